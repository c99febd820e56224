import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { onEvent } from '../../src/events.js';
import { createRelay, type RelayOptions } from '../../src/outbox/index.js';
import type { PublishOutcome } from '../../src/ports/broker.js';
import { drain, nextEvent, recordEvents, ScriptedPublisher, TestOutbox } from './support.js';

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

const no = (status: Exclude<PublishOutcome['status'], 'stored'>, reason = 'because'): PublishOutcome => ({
  status,
  reason,
});

describe.each(['single-phase', 'two-phase'] as const)('%s', (mode) => {
  const create = (options: Partial<RelayOptions> = {}) =>
    createRelay({ sql: db.sql, publisher, mode, name: 'relay-a', ...options });

  test('publishes what is committed, byte for byte, with the headers of the wire format, and marks it', async () => {
    const bytes = Buffer.from([0, 255, 1, 128]);
    const [id] = await db.write({
      topic: 'orders.v1',
      aggregateType: 'order',
      key: 'o-1',
      payload: bytes,
      contentType: 'application/x',
      headers: { traceparent: '00-1' },
    });
    await db.write({ payload: null });
    expect(await create().runOnce()).toEqual({ claimed: 2, published: 2 });
    expect(publisher.stored[0]).toEqual({
      topic: 'orders.v1',
      key: 'o-1',
      value: bytes,
      headers: {
        'event-id': id,
        'event-type': 'OrderConfirmed',
        'content-type': 'application/x',
        'aggregate-type': 'order',
        traceparent: '00-1',
        'rs-claim-token': expect.any(String) as unknown,
      },
    });
    expect(publisher.stored[1]).toMatchObject({ key: null, value: null });
    for (const row of await db.rows()) {
      expect(row).toMatchObject({
        status: 'PUBLISHED',
        attempts: 1,
        failures: 0,
        published_at: expect.any(Date) as unknown,
      });
    }
  });

  test('never publishes what was rolled back or is not committed yet', async () => {
    await expect(
      db.sql.transaction(async (tx) => {
        await db.outbox.enqueue(tx, { topic: 't', type: 'e', payload: 1 });
        expect(await create().runOnce()).toEqual({ claimed: 0, published: 0 });
        throw new Error('changed my mind');
      }),
    ).rejects.toThrow('changed my mind');
    expect(await create().runOnce()).toEqual({ claimed: 0, published: 0 });
  });

  test('messages skipped under contention: a row whose transaction commits late is published all the same', async () => {
    const early = await db.pool.connect();
    try {
      await early.query('begin');
      const [first] = await db.outbox.enqueue(early, { topic: 't', type: 'early', payload: 1 });
      const [second] = await db.write({ type: 'late' });
      await drain(create());
      await early.query('commit');
      await drain(create());
      expect(publisher.storedIds()).toEqual([second, first!.id]);
    } finally {
      early.release();
    }
  });

  test('publishes in the order of writing, batch by batch', async () => {
    const ids = await db.writeMany(25);
    await drain(create({ batchSize: 10 }));
    expect(publisher.storedIds()).toEqual(ids);
    expect(publisher.calls).toBe(3);
  });

  test('announces each step after it is durable', async () => {
    await db.write({ topic: 'good' }, { topic: 'bad' }, { topic: 'later' });
    publisher.answer = ({ topic }) =>
      topic === 'good' ? { status: 'stored' } : no(topic === 'bad' ? 'rejected' : 'retriable');
    using events = recordEvents('outbox.claimed', 'outbox.published', 'outbox.marked', 'outbox.failed', 'outbox.dead');
    const seenAtMark: Promise<string[]>[] = [];
    const listener = onEvent('outbox.marked', () => seenAtMark.push(db.statuses()));
    const [good, bad, later] = (await db.rows()).map(({ id }) => id);
    await create().runOnce();
    listener.unsubscribe();
    expect(events.seen).toEqual([
      { name: 'outbox.claimed', payload: { relay: 'relay-a', mode, ids: [good, bad, later] } },
      {
        name: 'outbox.published',
        payload: { relay: 'relay-a', ids: [good], durationMs: expect.any(Number) as unknown },
      },
      { name: 'outbox.marked', payload: { relay: 'relay-a', mode, ids: [good] } },
      { name: 'outbox.failed', payload: { relay: 'relay-a', outcome: 'retriable', ids: [later] } },
      { name: 'outbox.dead', payload: { relay: 'relay-a', reason: 'rejected', ids: [bad] } },
    ]);
    expect(await seenAtMark[0]).toEqual(['PUBLISHED', 'DEAD', 'PENDING']);
  });

  describe('outcomes', () => {
    test('row completed though the broker was down: nothing is marked that was not confirmed', async () => {
      await db.writeMany(3);
      publisher.answer = () => no('unknown', 'timed out');
      expect(await create().runOnce()).toEqual({ claimed: 3, published: 0 });
      for (const row of await db.rows()) {
        expect(row).toMatchObject({
          status: 'PENDING',
          attempts: 1,
          failures: 1,
          last_error: 'unknown: timed out',
          published_at: null,
        });
      }
    });

    test('a batch that partly fails: what was stored is marked and not sent again, the rest waits', async () => {
      const ids = await db.writeMany(4);
      publisher.answer = ({ value }) => (Buffer.from(value!).includes('2') ? no('retriable') : { status: 'stored' });
      const relay = create({ random: { next: () => 0.5 } });
      await relay.runOnce();
      expect(await db.statuses()).toEqual(['PUBLISHED', 'PUBLISHED', 'PENDING', 'PUBLISHED']);
      await drain(relay);
      expect(publisher.storedIds()).toEqual([ids[0], ids[1], ids[3]]);
    });

    test('a rejected event is dead with its reason; the others flow', async () => {
      await db.write({ topic: 'big' }, { topic: 'small' });
      publisher.answer = ({ topic }) => (topic === 'big' ? no('rejected', 'too large') : { status: 'stored' });
      await drain(create());
      expect(await db.rows()).toMatchObject([
        { status: 'DEAD', attempts: 1, failures: 1, last_error: 'rejected: too large' },
        { status: 'PUBLISHED' },
      ]);
    });

    test('backs off by the database clock, exponentially with full jitter, and goes on when the time has come', async () => {
      await db.write({});
      publisher.answer = () => no('retriable');
      const relay = create({ backoff: { baseMs: 60_000, capMs: 600_000 }, random: { next: () => 0.5 } });
      const wait = async () => {
        const { rows } = await db.pool.query<{ ms: number }>(`
          select extract(epoch from next_attempt_at - clock_timestamp())::float8 * 1000 as ms from replaysafe.outbox_event`);
        return rows[0]!.ms;
      };
      for (const bound of [60_000, 120_000, 240_000]) {
        await relay.runOnce();
        expect(await wait()).toBeGreaterThan(bound / 2 - 10_000);
        expect(await wait()).toBeLessThanOrEqual(bound / 2 + 1);
        expect(await relay.runOnce()).toEqual({ claimed: 0, published: 0 });
        await db.pool.query('update replaysafe.outbox_event set next_attempt_at = clock_timestamp()');
      }
      publisher.answer = () => ({ status: 'stored' });
      await relay.runOnce();
      expect(await db.rows()).toMatchObject([
        { status: 'PUBLISHED', attempts: 4, failures: 3, next_attempt_at: null, last_error: 'retriable: because' },
      ]);
    });

    test('is logged so that one can act: which topics, and what the broker said', async () => {
      await db.write({ topic: 'a' }, { topic: 'b' }, { topic: 'c' });
      publisher.answer = ({ topic }) =>
        topic === 'c' ? no('rejected', 'too large') : no('topic-refused', 'no such topic');
      const lines: object[] = [];
      const at = (level: string) => (fields: object) => lines.push({ level, ...fields });
      const logger = { debug: () => undefined, info: () => undefined, warn: at('warn'), error: at('error') };
      await create({ logger }).runOnce();
      const refused = { outcome: 'topic-refused', count: 2, topics: ['a', 'b'], error: 'topic-refused: no such topic' };
      expect(lines).toEqual([
        expect.objectContaining({ level: 'warn', ...refused }),
        expect.objectContaining({ level: 'error', reason: 'rejected', topics: ['c'], error: 'rejected: too large' }),
      ]);
    });

    test('is given up on after maxFailures, where that is set', async () => {
      await db.write({});
      publisher.answer = () => no('unknown');
      const relay = create({ maxFailures: 2, random: { next: () => 0 } });
      await relay.runOnce();
      expect(await db.statuses()).toEqual(['PENDING']);
      using events = recordEvents('outbox.dead');
      await relay.runOnce();
      expect(await db.statuses()).toEqual(['DEAD']);
      expect(events.of('outbox.dead')).toMatchObject([{ reason: 'max-failures' }]);
    });

    test('hot loop on one bad head: an unknown topic is retried for its time of grace, then dead, while others flow', async () => {
      await db.write({ topic: 'no-such' }, { topic: 'fine' });
      publisher.answer = ({ topic }) =>
        topic === 'fine' ? { status: 'stored' } : no('topic-refused', 'unknown topic');
      const relay = create({ random: { next: () => 0 }, topicGraceMs: 60_000 });
      await relay.runOnce();
      await relay.runOnce();
      expect(await db.rows()).toMatchObject([
        { status: 'PENDING', failures: 2, refused_since: expect.any(Date) as unknown },
        { status: 'PUBLISHED' },
      ]);
      await db.pool.query(`update replaysafe.outbox_event set refused_since = refused_since - interval '1 minute'`);
      await relay.runOnce();
      expect(await db.rows()).toMatchObject([
        { status: 'DEAD', failures: 3, last_error: 'topic-refused: unknown topic' },
        { status: 'PUBLISHED' },
      ]);
    });

    test('a topic that is being rolled out heals; the grace begins anew', async () => {
      await db.write({});
      publisher.answer = () => no('topic-refused');
      const relay = create({ random: { next: () => 0 } });
      await relay.runOnce();
      publisher.answer = () => no('retriable');
      await relay.runOnce();
      expect((await db.rows())[0]!.refused_since).toBeNull();
      publisher.answer = () => ({ status: 'stored' });
      await relay.runOnce();
      expect(await db.statuses()).toEqual(['PUBLISHED']);
    });

    test('failing a task fails for ever: an error of a megabyte with NUL and half surrogate pairs is recorded', async () => {
      await db.write({ topic: 'dead' }, { topic: 'later' });
      const reason = `\0\ud800 "\\'${'x\0'.repeat(500_000)}`;
      publisher.answer = ({ topic }) => no(topic === 'dead' ? 'rejected' : 'retriable', reason);
      await create().runOnce();
      const rows = await db.rows();
      expect(rows).toMatchObject([
        { status: 'DEAD', failures: 1 },
        { status: 'PENDING', failures: 1 },
      ]);
      for (const row of rows) expect(row.last_error).toHaveLength(2_000);
    });

    test('a publisher that throws, answers too little or nonsense has told nothing', async () => {
      await db.writeMany(2);
      const relay = create({ random: { next: () => 0 } });
      publisher.before = () => Promise.reject(new Error('exploded'));
      await relay.runOnce();
      expect(await db.rows()).toMatchObject([{ last_error: 'unknown: exploded' }, { last_error: 'unknown: exploded' }]);
      publisher.before = async () => undefined;
      publisher.publish = async () => [{ status: 'stored' }];
      await relay.runOnce();
      expect(await db.statuses()).toEqual(['PUBLISHED', 'PENDING']);
      publisher.publish = (async () => 'ok') as never;
      await relay.runOnce();
      expect((await db.rows())[1]).toMatchObject({ status: 'PENDING', failures: 3 });
    });

    test('a publisher that does not answer is left at its time-out; the rows wait and the late answer counts for nothing', async () => {
      await db.write({});
      publisher.before = () => new Promise(() => undefined);
      await create({ publishTimeoutMs: 50 }).runOnce();
      expect(await db.rows()).toMatchObject([
        { status: 'PENDING', failures: 1, last_error: 'unknown: the publisher did not answer in time' },
      ]);
    });
  });

  test('an event that is not available yet waits, and holds back nobody', async () => {
    await db.write({ availableAt: new Date(Date.now() + 3_600_000) }, {});
    await drain(create());
    expect(await db.statuses()).toEqual(['PENDING', 'PUBLISHED']);
    await db.pool.query('update replaysafe.outbox_event set next_attempt_at = now() where next_attempt_at is not null');
    await drain(create());
    expect(await db.statuses()).toEqual(['PUBLISHED', 'PUBLISHED']);
  });

  test.each([1, 4])('neither lane starves, with a batch of %d', async (batchSize) => {
    // A backlog of rows that are due again and fail for ever, and fresh ones behind it.
    await db.writeMany(20, { topic: 'failing', availableAt: new Date(0) });
    publisher.answer = ({ topic }) => (topic === 'failing' ? no('topic-refused') : { status: 'stored' });
    const relay = create({ batchSize, random: { next: () => 0 } });
    await db.writeMany(4, { topic: 'fresh' });
    let rounds = 0;
    while (publisher.stored.length < 4 && rounds < 40) {
      await relay.runOnce();
      rounds++;
    }
    expect(rounds).toBeLessThanOrEqual(8 / batchSize);
    expect((await db.rows()).some(({ failures }) => failures > 0)).toBe(true);
  });

  test('two relays at once: each event is published by one claim', async () => {
    const ids = await db.writeMany(300);
    const other = new ScriptedPublisher();
    using events = recordEvents('outbox.claimed');
    const relays = [
      create({ batchSize: 7 }),
      createRelay({ sql: db.sql, publisher: other, mode, batchSize: 7, name: 'relay-b' }),
    ];
    await Promise.all(relays.map(drain));
    expect([...publisher.storedIds(), ...other.storedIds()].sort()).toEqual([...ids].sort());
    const claimed = events.of('outbox.claimed').flatMap(({ ids }) => ids as string[]);
    expect(claimed.length).toBe(300);
    expect((await db.rows()).every(({ status, attempts }) => status === 'PUBLISHED' && attempts === 1)).toBe(true);
  });

  test('N replicas retry N times as often: a failing row is tried by one relay at a time, on its own schedule', async () => {
    await db.writeMany(10);
    publisher.answer = () => no('retriable');
    const relays = Array.from({ length: 6 }, (_, n) =>
      create({ name: `relay-${n}`, batchSize: 3, backoff: { baseMs: 60_000 }, random: { next: () => 0.9 } }),
    );
    await Promise.all(relays.map(drain));
    expect((await db.rows()).every(({ failures, attempts }) => failures === 1 && attempts === 1)).toBe(true);
  });

  test('a started relay publishes what comes, sleeps when nothing does, and wakes up on a hint', async () => {
    await using relay = create({ pollIdleMs: 60_000, pollBusyMs: 60_000 });
    relay.start();
    relay.start();
    for (let round = 0; round < 3; round++) {
      const marked = nextEvent('outbox.marked');
      const [id] = await db.write({});
      relay.wake();
      expect((await marked).ids).toEqual([id]);
    }
  });

  test('polling alone finds an event within the idle interval', async () => {
    await using relay = create({ pollIdleMs: 50 });
    relay.start();
    const marked = nextEvent('outbox.marked');
    await db.write({});
    await marked;
  });

  test('broker down: the outbox keeps filling, the relay tries now and then with few rows, and recovers by itself', async () => {
    publisher.answer = () => no('retriable', 'connection refused');
    await using relay = create({ pollIdleMs: 20, backoff: { baseMs: 5, capMs: 40 } });
    await db.writeMany(1_000);
    const failed = nextEvent('outbox.failed');
    relay.start();
    await failed;
    const trouble = nextEvent('outbox.failed');
    await db.write({});
    await trouble;
    // The first batch found out; after that only probes were sent.
    expect((await db.rows()).filter(({ failures }) => failures > 0).length).toBeLessThan(300);
    publisher.answer = () => ({ status: 'stored' });
    const last = nextEvent('outbox.marked', () => publisher.stored.length === 1_001);
    await last;
    expect(new Set(publisher.storedIds()).size).toBe(1_001);
    expect((await db.outbox.status({ countPublished: true })).published).toBe(1_001);
  });
});
