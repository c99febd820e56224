import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createOutbox } from '../../src/outbox/index.js';
import type { OutboxEvent } from '../../src/ports/enqueue.js';
import { recordEvents, TestOutbox } from './support.js';

const EVENT: OutboxEvent = { topic: 'orders', type: 'OrderConfirmed', payload: { n: 1 } };
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

let db: TestOutbox;
beforeAll(async () => {
  db = await TestOutbox.open();
});
afterAll(() => db.close());
beforeEach(() => db.pool.query('truncate replaysafe.outbox_event'));

/** A transaction as an application opens it, without the port. */
async function inTransaction<T>(end: 'commit' | 'rollback', fn: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await db.pool.connect();
  try {
    await client.query('begin');
    const result = await fn(client);
    await client.query(end);
    return result;
  } catch (error) {
    await client.query('rollback');
    throw error;
  } finally {
    client.release();
  }
}

test('an event commits and rolls back with the transaction of the caller', async () => {
  await inTransaction('rollback', (client) => db.outbox.enqueue(client, EVENT));
  expect(await db.rows()).toEqual([]);
  await inTransaction('commit', (client) => db.outbox.enqueue(client, EVENT));
  expect(await db.statuses()).toEqual(['PENDING']);
});

test('a transaction of the port and its handle are taken as well', async () => {
  await db.sql.transaction(async (tx) => {
    await db.outbox.enqueue(tx, EVENT);
    await db.outbox.enqueue(tx.handle, EVENT);
  });
  expect(await db.rows()).toHaveLength(2);
});

test('every column is as given, byte for byte; the id is a UUID of version 7 by the database', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  const availableAt = new Date('2031-01-02T03:04:05.678Z');
  const full: OutboxEvent = {
    topic: 'orders.v1',
    type: 'Orders\u{1F600}',
    aggregateType: "or'der",
    key: 'k\\"{},1',
    payload: bytes,
    contentType: 'application/x',
    headers: { traceparent: '00-1', 'x"y': "a'b\\" },
    availableAt,
  };
  for (const events of [full, [full, full]]) {
    const written = await inTransaction('commit', (client) => db.outbox.enqueue(client, events));
    const { rows } = await db.pool.query<{ shard: number }>(
      'select * from replaysafe.outbox_event where id = any($1)',
      [written.map(({ id }) => id)],
    );
    expect(rows).toHaveLength(Array.isArray(events) ? 2 : 1);
    for (const row of rows) {
      expect(row).toMatchObject({
        id: expect.stringMatching(UUID_V7) as unknown,
        topic: full.topic,
        event_type: full.type,
        aggregate_type: full.aggregateType,
        aggregate_id: full.key,
        payload: bytes,
        content_type: full.contentType,
        headers: full.headers,
        next_attempt_at: availableAt,
        status: 'PENDING',
        attempts: 0,
        failures: 0,
      });
      expect(row.shard).toBeGreaterThanOrEqual(0);
      expect(row.shard).toBeLessThan(32);
    }
  }
});

test('1,000 events are one statement; ids come back in their order, which is the order of writing', async () => {
  const given = '0198f000-0000-7000-8000-0000000000ab';
  const events = Array.from({ length: 1_000 }, (_, n) => ({
    ...EVENT,
    payload: { n },
    ...(n === 500 && { id: given.toUpperCase() }),
  }));
  const sent: string[] = [];
  const written = await inTransaction('commit', (client) => {
    const counting = new Proxy(client, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target) as unknown;
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          if (name === 'query') sent.push(String(args[0]).split('\n')[0]!);
          return (value as (...args: unknown[]) => unknown).apply(target, args);
        };
      },
    });
    return db.outbox.enqueue(counting, events);
  });
  expect(sent).toEqual(['/* replaysafe:outbox.enqueue-many */']);
  const { rows } = await db.pool.query<{ id: string; payload: Buffer }>(
    'select id, payload from replaysafe.outbox_event order by seq',
  );
  expect(rows.map(({ payload }) => JSON.parse(payload.toString()) as unknown)).toEqual(
    events.map(({ payload }) => payload),
  );
  expect(written.map(({ id }) => id)).toEqual(rows.map(({ id }) => id));
  expect(written[500]!.id).toBe(given);
});

test('no events are no statement', async () => {
  expect(await inTransaction('commit', (client) => db.outbox.enqueue(client, []))).toEqual([]);
});

test('announces ids and topics once the rows are inserted', async () => {
  using events = recordEvents('outbox.enqueued');
  const written = await inTransaction('commit', (client) =>
    db.outbox.enqueue(client, [EVENT, { ...EVENT, topic: 'bills' }, EVENT]),
  );
  expect(events.of('outbox.enqueued')).toEqual([{ ids: written.map(({ id }) => id), topics: ['orders', 'bills'] }]);
});

describe('without a transaction', () => {
  const refused = { code: 'RS_OUTBOX_NO_TRANSACTION' };

  test('a pool, an idle client and nothing at all are refused (P5)', async () => {
    const client = await db.pool.connect();
    try {
      await expect(db.outbox.enqueue(db.pool as never, EVENT)).rejects.toMatchObject(refused);
      await expect(db.outbox.enqueue(client, EVENT)).rejects.toMatchObject(refused);
      await expect(db.outbox.enqueue(undefined as never, EVENT)).rejects.toMatchObject(refused);
      await client.query('begin');
      await client.query('commit');
      await expect(db.outbox.enqueue(client, EVENT)).rejects.toMatchObject(refused);
    } finally {
      client.release();
    }
    expect(await db.rows()).toEqual([]);
  });

  test('the SQL port itself is refused by its name; every refusal tells what to pass', async () => {
    const passInstead =
      /; pass `handle` of sql\.transaction, `ctx\.tx`, `request\.idempotency\.tx`, or a pg client inside BEGIN$/;
    for (const [given, what] of [
      [db.sql, 'this is the SQL port'],
      [db.pool, 'this is a pool'],
      [{}, 'this is no pg client'],
    ] as const) {
      const error: unknown = await db.outbox.enqueue(given as never, EVENT).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ ...refused, message: expect.stringContaining(what) as unknown });
      expect(error).toMatchObject({ message: expect.stringMatching(passInstead) as unknown });
    }
  });

  test('a transaction of the port that has ended is refused', async () => {
    const ended = await db.sql.transaction(async (tx) => tx);
    await expect(db.outbox.enqueue(ended, EVENT)).rejects.toMatchObject({ code: 'RS_TX_REVOKED' });
  });
});

test.each(['commit', 'rollback'] as const)(
  'an enqueue that is not awaited stands before the %s sent next, in no other transaction (P5)',
  async (end) => {
    const client = await db.pool.connect();
    try {
      await client.query('begin');
      const dangling = db.outbox.enqueue(client, EVENT);
      await client.query(end);
      // The next owner of the client ends the other way.
      await client.query('begin');
      await client.query(end === 'commit' ? 'rollback' : 'commit');
      await dangling;
    } finally {
      client.release();
    }
    expect(await db.statuses()).toEqual(end === 'commit' ? ['PENDING'] : []);
  },
);

test('reply lost under load, row declared delivered before it was added: an enqueue left behind in a transaction of the port fails it', async () => {
  let dangling: Promise<unknown> | undefined;
  await expect(
    db.sql.transaction(async (tx) => {
      dangling = db.outbox.enqueue(tx, EVENT);
      dangling.catch(() => undefined);
    }),
  ).rejects.toMatchObject({ code: 'RS_TX_DANGLING' });
  expect(await db.rows()).toEqual([]);
});

test('an invalid event costs the transaction nothing', async () => {
  await inTransaction('commit', async (client) => {
    await expect(db.outbox.enqueue(client, [EVENT, { ...EVENT, topic: '' }])).rejects.toMatchObject({
      code: 'RS_OUTBOX_EVENT_INVALID',
      message: expect.stringContaining('event 2') as unknown,
    });
    await db.outbox.enqueue(client, { ...EVENT, topic: 'other' });
  });
  expect((await db.rows()).map(({ topic }) => topic)).toEqual(['other']);
});

describe('an id that the outbox has already', () => {
  const first = { ...EVENT, id: '0198f000-0000-7000-8000-000000000001', topic: 'first' };
  const again = { ...first, topic: 'again' };

  test('is refused, and the transaction with it', async () => {
    await inTransaction('commit', (client) => db.outbox.enqueue(client, first));
    for (const events of [again, [EVENT, again]]) {
      await expect(inTransaction('commit', (client) => db.outbox.enqueue(client, events))).rejects.toMatchObject({
        code: 'RS_OUTBOX_EVENT_INVALID',
      });
    }
    await expect(
      db.sql.transaction(async (tx) => {
        await db.outbox.enqueue(tx, again).catch(() => undefined);
      }),
    ).rejects.toMatchObject({ code: 'RS_TX_ABORTED' });
    expect((await db.rows()).map(({ topic }) => topic)).toEqual(['first']);
  });

  test('is a repetition where the outbox was created so: the first one stays, the answer is the same', async () => {
    const outbox = createOutbox({ sql: db.sql, duplicateId: 'ignore' });
    for (const events of [first, again, [again, again]]) {
      const written = await inTransaction('commit', (client) => outbox.enqueue(client, events));
      expect(written[0]).toEqual({ id: first.id });
    }
    expect((await db.rows()).map(({ topic }) => topic)).toEqual(['first']);
  });
});

test('status counts by status and tells the age of the oldest event that is due', async () => {
  expect(await db.outbox.status()).toEqual({ pending: 0, publishing: 0, dead: 0, oldestOpenAgeMs: 0 });
  await db.writeMany(3, { key: 'k' });
  await db.write({ availableAt: new Date('2100-01-01T00:00:00Z') });
  await db.pool.query(`
    update replaysafe.outbox_event set created_at = clock_timestamp() - interval '1 day' where next_attempt_at is not null;
    update replaysafe.outbox_event set created_at = clock_timestamp() - interval '1 minute'
      where seq = (select min(seq) from replaysafe.outbox_event);
    update replaysafe.outbox_event set status = 'DEAD', last_error = 'x'
      where seq = (select min(seq) + 1 from replaysafe.outbox_event)`);
  const status = await db.outbox.status({ countPublished: true });
  expect(status).toMatchObject({ pending: 3, publishing: 0, dead: 1, published: 0 });
  expect(status.oldestOpenAgeMs).toBeGreaterThanOrEqual(60_000);
  expect(status.oldestOpenAgeMs).toBeLessThan(120_000);
});
