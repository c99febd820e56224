import { Cron } from 'croner';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { createRelay } from '../../src/outbox/index.js';
import { pause, type Clock } from '../../src/ports/clock.js';
import { LeaseDatabase } from './lease-database.js';
import { countingClock, leftovers, signalListeners } from './leftovers.js';

const ROUNDS = 200;
let db: LeaseDatabase;
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
afterAll(() => db.close());

/** A pod whose leased worker is running, its lease being renewed, when the stop comes. */
async function liveAndStop(clock: Clock): Promise<void> {
  const lifecycle = createLifecycle({ clock, lameDuckMs: 0 });
  const { sql } = db;
  const lease = { sql, leaseMs: 30_000 };
  let ran: () => void = () => undefined;
  const running = new Promise<void>((resolve) => (ran = resolve));
  lifecycle.worker(
    {
      name: 'by-interval',
      everyMs: 1,
      run: async ({ stopping }) => {
        ran();
        await pause(clock, 60_000, stopping);
      },
    },
    { lease },
  );
  const cron = new Cron('0 3 * * *', { paused: true });
  lifecycle.worker({ name: 'by-schedule', cron, run: async () => undefined }, { lease });
  const relay = createRelay({
    sql,
    clock,
    publisher: { publish: async () => [], stop: async () => undefined },
    signals: lifecycle.signalsFor('work'),
  });
  lifecycle.relay(relay);
  relay.start();
  lifecycle.started();
  await running;
  expect((await lifecycle.stop()).exitCode).toBe(0);
  expect(signalListeners(lifecycle)).toBe(0);
}

it(
  `leaves no timer, connection or listener behind, and no lease held, when it is started and stopped ${ROUNDS} times`,
  { timeout: 60_000 },
  async () => {
    const { clock, pending } = countingClock();
    await liveAndStop(clock);
    const before = leftovers(pending);
    for (let round = 0; round < ROUNDS; round++) await liveAndStop(clock);
    const { sockets, ...after } = leftovers(pending);
    expect({ ...after, sockets: before.sockets }).toEqual(before);
    expect(before).toMatchObject({ timers: 0, subscribed: [] });
    // Idle connections of the pool, which outlives the pods.
    expect(sockets).toBeLessThanOrEqual(db.pool.totalCount);
    expect([db.pool.idleCount, db.pool.waitingCount]).toEqual([db.pool.totalCount, 0]);
    expect(await db.row()).toMatchObject({ owner: null, epoch: String(ROUNDS + 1), failures: 0 });
  },
);
