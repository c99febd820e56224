import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock, type Clock } from '../../src/ports/clock.js';
import { nextEvent, TestTasks } from './support.js';

let db: TestTasks;
beforeAll(async () => {
  db = await TestTasks.open();
});
afterAll(() => db.close());
beforeEach(() => db.clear());

const hang = () => new Promise<never>(() => undefined);
/** A process whose longer timers do not run: nothing is renewed. */
const frozen: Clock = {
  ...systemClock,
  setTimer: (delayMs, fire, options) =>
    delayMs > 1_000 ? { cancel: () => undefined } : systemClock.setTimer(delayMs, fire, options),
};

test('P10: a worker that wakes up after its lease cannot end a task that another one has claimed since', async () => {
  const id = await db.enqueue();
  let wakeUp: (result: { sent: number }) => void = () => undefined;
  const first = nextEvent('task.claimed');
  const asleep = db.start(
    { receipt: () => new Promise((resolve) => (wakeUp = resolve)) },
    { name: 'asleep', clock: frozen, concurrency: 1 },
  );
  await first;
  const { rows } = await db.pool.query<{ token: string }>('select claim_token::text as token from replaysafe.task');
  const recovered = nextEvent('task.recovered');
  const second = nextEvent('task.claimed', ({ worker }) => worker === 'awake');
  let finish: (result: { sent: number }) => void = () => undefined;
  db.start({ receipt: () => new Promise((resolve) => (finish = resolve)) }, { name: 'awake', leaseMs: 300 });
  let flows = false;
  void recovered.then(() => (flows = true));
  await expect
    .poll(async () => {
      // Again and again: the first round of the sleeper's renewals may be under way.
      await db.pool.query(
        `update replaysafe.task set locked_until = clock_timestamp() - interval '1 s'
         where status = 'RUNNING' and claim_token = $1`,
        [rows[0]!.token],
      );
      return flows;
    })
    .toBe(true);
  expect((await recovered).ids).toEqual([id]);
  await second;

  const fenced = nextEvent('task.fenced');
  wakeUp({ sent: 1 });
  expect(await fenced).toMatchObject({ worker: 'asleep', count: 1 });
  expect((await db.tasks.get(id))?.status).toBe('RUNNING');
  const done = nextEvent('task.succeeded');
  finish({ sent: 2 });
  await done;
  expect(await db.tasks.get(id)).toMatchObject({ status: 'SUCCEEDED', result: { sent: 2 }, attempts: 2 });
  await asleep.stop();
});

test('a lease is renewed for as long as the handler runs', async () => {
  const id = await db.enqueue();
  const claimed = nextEvent('task.claimed');
  let finish: (result: { sent: number }) => void = () => undefined;
  db.start({ receipt: () => new Promise((resolve) => (finish = resolve)) }, { leaseMs: 150 });
  await claimed;
  const { rows } = await db.pool.query<{ until: Date }>('select locked_until as until from replaysafe.task');
  await expect
    .poll(async () => {
      const now = await db.pool.query<{ until: Date }>('select locked_until as until from replaysafe.task');
      return now.rows[0]!.until.getTime();
    })
    .toBeGreaterThan(rows[0]!.until.getTime() + 150);
  const done = nextEvent('task.succeeded');
  finish({ sent: 1 });
  await done;
  expect(await db.tasks.get(id)).toMatchObject({ attempts: 1, failures: 0 });
});

test('a handler whose lease is gone is told so', async () => {
  await db.enqueue();
  const claimed = nextEvent('task.claimed');
  const told = new Promise<unknown>((resolve) => {
    db.start(
      {
        receipt: ({ signal }) => {
          signal.addEventListener('abort', () => {
            resolve(signal.reason);
          });
          return hang();
        },
      },
      { leaseMs: 150 },
    );
  });
  await claimed;
  await db.pool.query('update replaysafe.task set claim_token = gen_random_uuid()');
  expect(await told).toMatchObject({ code: 'RS_TASK_FENCED' });
});

test('an input that kills its worker does not come back for ever', async () => {
  const id = await db.enqueue();
  await db.pool.query(`update replaysafe.task set status = 'RUNNING', claim_token = gen_random_uuid(), failures = 2,
    locked_until = clock_timestamp() - interval '1 s'`);
  const gaveUp = nextEvent('task.given-up');
  db.start({ receipt: () => ({ sent: 1 }) });
  expect(await gaveUp).toMatchObject({ id, reason: 'max-failures' });
  expect(await db.tasks.get(id)).toMatchObject({ status: 'FAILED', failures: 3 });
});

test('an outage of the database between the work and its end does not have it done again', async () => {
  const id = await db.enqueue();
  let runs = 0;
  const claimed = nextEvent('task.claimed');
  let finish: (result: { sent: number }) => void = () => undefined;
  db.start({
    receipt: () => {
      runs++;
      return new Promise((resolve) => (finish = resolve));
    },
  });
  await claimed;
  await db.pool.query('alter table replaysafe.task rename to task_away');
  const errored = nextEvent('task.errored');
  finish({ sent: 1 });
  await errored;
  const done = nextEvent('task.succeeded');
  await db.pool.query('alter table replaysafe.task_away rename to task');
  await done;
  expect(runs).toBe(1);
  expect((await db.tasks.get(id))?.status).toBe('SUCCEEDED');
});

test('a hint ends the wait of an idle worker', async () => {
  const worker = db.start({ receipt: () => ({ sent: 1 }) }, { pollIdleMs: 3_600_000, pollBusyMs: 3_600_000 });
  const first = nextEvent('task.succeeded');
  await db.enqueue({ key: 'k-1' });
  worker.wake();
  await first;
  const second = nextEvent('task.succeeded');
  await db.enqueue({ key: 'k-2' });
  worker.wake();
  await second;
});

test('a handler that holds its own row in an open transaction keeps its task, and the leases of all others', async () => {
  const slow = await db.enqueue({ kind: 'other', key: 'k-slow' });
  const beside = await db.enqueue({ key: 'k-beside' });
  let commit: () => void = () => undefined;
  const committing = new Promise<void>((resolve) => (commit = resolve));
  let finish: (result: { sent: number }) => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    db.start(
      {
        other: (task) =>
          db.sql.transaction(async (tx) => {
            await task.complete(tx, 'done');
            resolve();
            await committing;
          }),
        receipt: () => new Promise((done) => (finish = done)),
      },
      { leaseMs: 300 },
    );
  });
  await held;
  const until = async () =>
    (await db.pool.query<{ until: Date }>('select locked_until as until from replaysafe.task where id = $1', [beside]))
      .rows[0]!.until;
  const before = await until();
  // Two leases later it is still renewed, although the other row is locked.
  await expect.poll(async () => (await until()).getTime() - before.getTime(), { timeout: 10_000 }).toBeGreaterThan(600);
  const both = Promise.all([
    nextEvent('task.succeeded', ({ ids }) => ids.includes(slow)),
    nextEvent('task.succeeded', ({ ids }) => ids.includes(beside)),
  ]);
  commit();
  finish({ sent: 1 });
  await both;
  expect(await db.tasks.get(slow)).toMatchObject({ status: 'SUCCEEDED', result: 'done', attempts: 1 });
  expect(await db.tasks.get(beside)).toMatchObject({ status: 'SUCCEEDED', attempts: 1 });
});
