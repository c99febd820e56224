import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../src/events.js';
import { createRelay, type RelayOptions } from '../../src/outbox/index.js';
import { aborted, drain, gate, nextEvent, recordEvents, ScriptedPublisher, TestOutbox } from './support.js';

let db: TestOutbox;
let publisher: ScriptedPublisher;
beforeAll(async () => {
  db = await TestOutbox.open();
});
afterAll(() => db.close());
beforeEach(async () => {
  await db.pool.query('truncate replaysafe.outbox_event');
  publisher = new ScriptedPublisher();
});

describe.each(['single-phase', 'two-phase'] as const)('%s', (mode) => {
  const create = (options: Partial<RelayOptions> = {}) =>
    createRelay({ sql: db.sql, publisher, mode, name: 'relay-a', pollIdleMs: 50, ...options });

  /** Holds each publish until the gate opens; tells when one has begun. */
  function holdPublish() {
    const begun = gate();
    const held = gate();
    let deadline: AbortSignal | undefined;
    publisher.before = async (_, signal) => {
      deadline = signal;
      begun.open();
      await held.opened;
    };
    return {
      begun: begun.opened,
      release: () => {
        held.open();
      },
      cut: () => deadline?.aborted,
    };
  }

  test('finishes its batch, marks it, and claims nothing more (R-SHUT-SCHED-3)', async () => {
    await db.writeMany(30);
    const hold = holdPublish();
    const relay = create({ batchSize: 10 });
    relay.start();
    await hold.begun;
    using events = recordEvents('outbox.claimed', 'outbox.marked', 'outbox.released', 'outbox.failed');
    const stopped = relay.stop();
    const again = relay.stop();
    expect(await relay.runOnce()).toEqual({ claimed: 0, published: 0 });
    // The critical section does not see the stop (R-SHUT-SCHED-2).
    expect(hold.cut()).toBe(false);
    hold.release();
    await Promise.all([stopped, again]);
    expect(events.names()).toEqual(['outbox.marked']);
    expect((await db.statuses()).filter((status) => status === 'PUBLISHED')).toHaveLength(10);
    expect((await db.outbox.status()).publishing).toBe(0);
  });

  test('a stop between claim and publish gives the rows back at once, and no attempt is burnt', async () => {
    const ids = await db.writeMany(3);
    const relay = create();
    const listener = onEvent('outbox.claimed', () => void relay.stop());
    using events = recordEvents('outbox.published', 'outbox.released', 'outbox.failed');
    relay.start();
    await nextEvent('outbox.released');
    listener.unsubscribe();
    await relay.stop();
    expect(events.seen).toEqual([{ name: 'outbox.released', payload: { relay: 'relay-a', ids } }]);
    expect(publisher.calls).toBe(0);
    for (const row of await db.rows()) {
      expect(row).toMatchObject({
        status: 'PENDING',
        attempts: 0,
        failures: 0,
        claim_token: null,
        next_attempt_at: null,
      });
    }
    await drain(create());
    expect(publisher.storedIds()).toEqual(ids);
  });

  test('rows never yielded were acked: cut after 3 of 10, exactly 7 are open again, as if never tried', async () => {
    const ids = await db.writeMany(10);
    const begun = gate();
    publisher.before = async (_, deadline) => {
      begun.open();
      await aborted(deadline);
    };
    let answered = 0;
    publisher.answer = () => (answered++ < 3 ? { status: 'stored' } : { status: 'unknown', reason: 'cut' });
    const relay = create({ maxFailures: 1 });
    relay.start();
    await begun.opened;
    const deadline = new AbortController();
    using events = recordEvents('outbox.marked', 'outbox.released', 'outbox.failed', 'outbox.dead');
    const stopped = relay.stop(deadline.signal);
    deadline.abort();
    await stopped;
    expect(events.seen).toEqual([
      { name: 'outbox.marked', payload: { relay: 'relay-a', mode, ids: ids.slice(0, 3) } },
      { name: 'outbox.released', payload: { relay: 'relay-a', ids: ids.slice(3) } },
    ]);
    const rows = await db.rows();
    expect(rows.slice(0, 3).every(({ status, attempts }) => status === 'PUBLISHED' && attempts === 1)).toBe(true);
    for (const row of rows.slice(3)) {
      expect(row).toMatchObject({
        status: 'PENDING',
        attempts: 0,
        failures: 0,
        next_attempt_at: null,
        last_error: null,
      });
    }
    publisher = new ScriptedPublisher();
    expect(await create().runOnce()).toEqual({ claimed: 7, published: 7 });
  });

  test('a publisher that ignores its deadline does not hold up the stop, and its rows come back', async () => {
    await db.writeMany(2);
    const hold = holdPublish();
    const relay = create();
    relay.start();
    await hold.begun;
    const released = nextEvent('outbox.released');
    const startedAt = performance.now();
    await relay.stop(AbortSignal.abort());
    // Stated: the last word of the publisher and the last write are bounded by 1.5 s.
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    await released;
    expect(await db.rows()).toMatchObject([
      { status: 'PENDING', attempts: 0, failures: 0 },
      { status: 'PENDING', attempts: 0, failures: 0 },
    ]);
    hold.release();
  });

  test("the lifecycle's signals end it: stopping after the batch, deadline at once", async () => {
    await db.writeMany(20);
    const stopping = new AbortController();
    const deadline = new AbortController();
    const relay = create({
      batchSize: 10,
      signals: { stopping: stopping.signal, deadline: deadline.signal, budgetMs: 20_000 },
    });
    const begun = gate();
    publisher.before = async (_, cut) => {
      begun.open();
      await aborted(cut);
    };
    relay.start();
    await begun.opened;
    stopping.abort();
    deadline.abort();
    await relay.stop();
    expect((await db.statuses()).filter((status) => status === 'PUBLISHED')).toHaveLength(10);
    relay.start();
    expect(await relay.runOnce()).toEqual({ claimed: 0, published: 0 });
    await relay.stop();
  });

  test('start and stop, many times over: nothing is left behind, nothing is lost', async () => {
    const ids = await db.writeMany(40);
    const relay = create({ batchSize: 2 });
    for (let round = 0; round < 40; round++) {
      relay.start();
      if (round % 3 === 0) await relay.runOnce();
      await relay.stop();
    }
    expect(db.pool.idleCount).toBe(db.pool.totalCount);
    await drain(create());
    expect(publisher.storedIds().sort()).toEqual([...ids].sort());
    expect((await db.rows()).every(({ status, attempts }) => status === 'PUBLISHED' && attempts === 1)).toBe(true);
  });
});
