import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, test } from 'vitest';
import { createTasks, taskKind } from '../../src/tasks/index.js';
import { kinds, TestTasks } from './support.js';

let db: TestTasks;
beforeAll(async () => {
  db = await TestTasks.open();
});
afterAll(() => db.close());
beforeEach(() => db.clear());

const receipt = { kind: 'receipt', key: 'k-1', input: { n: 1 } } as const;

describe('enqueue', () => {
  test('is part of the caller’s transaction, by the driver’s own handle and by that of the port', async () => {
    await expect(
      db.sql.transaction(async (tx) => {
        await db.tasks.enqueue(tx, receipt);
        throw new Error('rolled back');
      }),
    ).rejects.toThrow('rolled back');
    expect(await db.tasks.find('receipt', 'k-1')).toBeUndefined();

    const client = await db.pool.connect();
    await client.query('begin');
    await db.tasks.enqueue(client, receipt);
    await client.query('commit');
    client.release();
    expect(await db.tasks.find('receipt', 'k-1')).toMatchObject({ status: 'PENDING', attempts: 0, input: { n: 1 } });
  });

  test('refuses a pool and a client without a transaction: it would be committed alone', async () => {
    const client = await db.pool.connect();
    await expect(db.tasks.enqueue(client, receipt)).rejects.toMatchObject({ code: 'RS_OUTBOX_NO_TRANSACTION' });
    client.release();
    await expect(db.tasks.enqueue(db.pool as never, receipt)).rejects.toMatchObject({
      code: 'RS_OUTBOX_NO_TRANSACTION',
    });
  });

  test('one operation is one row, however often and by however many it is enqueued', async () => {
    const many = await Promise.all(
      Array.from({ length: 8 }, () => db.sql.transaction((tx) => db.tasks.enqueue(tx, receipt))),
    );
    expect(many.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(many.map(({ id }) => id)).size).toBe(1);
  });

  test('one key with two inputs is a mistake, and nothing of it is written', async () => {
    await db.enqueue();
    await expect(db.enqueue({ input: { n: 2 } })).rejects.toMatchObject({ code: 'RS_TASK_KEY_REUSED' });
    expect((await db.tasks.find('receipt', 'k-1'))?.input).toEqual({ n: 1 });
    // Another kind is another operation.
    await db.enqueue({ kind: 'other', input: { n: 2 } });
  });

  test.each([
    ['an unknown kind', { kind: 'nonsense' }],
    ['a key made of nothing', { key: '' }],
    ['a key with a comma', { key: 'a,b' }],
    ['an input without a JSON form', { input: undefined }],
    ['an input that contains itself', { input: circle() }],
    ['an input of a megabyte', { input: 'x'.repeat(1_000_000) }],
    ['a moment that is none', { availableAt: new Date(Number.NaN) }],
  ])('%s is refused with a code', async (_, wrong) => {
    await expect(db.enqueue(wrong as never)).rejects.toMatchObject({ code: 'RS_TASK_INVALID' });
  });

  test('an input that its kind does not parse is refused', async () => {
    const strict = { order: taskKind<{ id: string }>({ parse: parseOrder }) };
    const tasks = createTasks({ sql: db.sql, kinds: strict });
    const enqueue = (input: unknown) =>
      db.sql.transaction((tx) => tasks.enqueue(tx, { kind: 'order', key: 'k', input: input as { id: string } }));
    await expect(enqueue({ id: 5 })).rejects.toMatchObject({ code: 'RS_TASK_INVALID' });
    expect(await enqueue({ id: 'o-1' })).toMatchObject({ created: true });
  });

  test('a kind whose parse is asynchronous is refused, whatever becomes of its promise', async () => {
    const tasks = createTasks({
      sql: db.sql,
      kinds: { odd: taskKind<unknown>({ parse: () => Promise.reject(new Error('late')) }) },
    });
    const enqueued = db.sql.transaction((tx) => tasks.enqueue(tx, { kind: 'odd', key: 'k', input: 1 }));
    await expect(enqueued).rejects.toMatchObject({
      code: 'RS_TASK_INVALID',
      cause: { message: 'parse must not be asynchronous' },
    });
  });

  test('inputs and results are typed by their kind', () => {
    type Enqueue = typeof db.tasks.enqueue<'receipt'>;
    expectTypeOf<Parameters<Enqueue>[1]['input']>().toEqualTypeOf<{ n: number }>();
    type Found = NonNullable<Awaited<ReturnType<typeof db.tasks.find<'receipt'>>>>;
    expectTypeOf<Found['result']>().toEqualTypeOf<{ sent: number } | undefined>();
  });
});

describe('what can be asked and done by hand', () => {
  test('list, by status and kind, the newest first', async () => {
    const first = await db.enqueue({ key: 'k-1' });
    const second = await db.enqueue({ key: 'k-2' });
    await db.enqueue({ kind: 'other', key: 'k-3' });
    await db.tasks.cancel(first);
    expect((await db.tasks.list({ kind: 'receipt' })).map(({ id }) => id)).toEqual([second, first]);
    expect((await db.tasks.list({ status: 'CANCELLED' })).map(({ id }) => id)).toEqual([first]);
    await expect(db.tasks.list({ status: 'LOST' as never })).rejects.toMatchObject({ code: 'RS_OPTION_INVALID' });
  });

  test('status counts what is open or failed', async () => {
    await db.enqueue({ key: 'k-1' });
    await db.enqueue({ key: 'k-2', availableAt: new Date(Date.now() + 3_600_000) });
    await db.pool.query(
      "update replaysafe.task set next_attempt_at = clock_timestamp() - interval '5 s' where key = 'k-1'",
    );
    const { oldestDueAgeMs, ...counts } = await db.tasks.status();
    expect(counts).toEqual({ pending: 2, running: 0, failed: 0 });
    expect(oldestDueAgeMs).toBeGreaterThanOrEqual(5_000);
  });

  test('cancel says what became of it', async () => {
    const id = await db.enqueue();
    expect(await db.tasks.cancel(id)).toBe('cancelled');
    expect(await db.tasks.cancel(id)).toBe('ended');
    expect(await db.tasks.cancel('no-id')).toBe('unknown');
    expect(await db.tasks.cancel('00000000-0000-7000-8000-000000000000')).toBe('unknown');
  });

  test.each([undefined, {}, { kind: undefined }, { kind: '' }, { ids: 'no-list' }, { ids: [1] }])(
    'a redrive must say of what: %j is not everything',
    async (what) => {
      await expect(db.tasks.redrive(what as never)).rejects.toMatchObject({ code: 'RS_OPTION_INVALID' });
    },
  );

  test('the cleaner deletes what ended long ago, in pieces, and neither failures nor what is open', async () => {
    await db.pool.query(`
      insert into replaysafe.task (kind, key, input, max_failures, status, finished_at, last_error)
      select 'other', s || n, '{}', 1, s, case when s = 'PENDING' then null else now() - interval '8 days' end, 'x'
      from generate_series(1, 25) n, unnest(array['SUCCEEDED', 'CANCELLED', 'FAILED', 'PENDING']) s`);
    await db.enqueue();
    const signal = new AbortController().signal;
    await db.tasks.cleaner({ batchSize: 10 }).run({ stopping: signal, deadline: signal });
    const { rows } = await db.pool.query<{ status: string; n: number }>(
      'select status, count(*)::int as n from replaysafe.task group by 1 order by 1',
    );
    expect(rows).toEqual([
      { status: 'FAILED', n: 25 },
      { status: 'PENDING', n: 26 },
    ]);
  });

  test('a stop ends the cleaner between two pieces', async () => {
    await db.pool.query(`insert into replaysafe.task (kind, key, input, max_failures, status, finished_at)
      select 'other', n::text, '{}', 1, 'SUCCEEDED', now() - interval '8 days' from generate_series(1, 3) n`);
    const stopping = AbortSignal.abort();
    await db.tasks.cleaner({ batchSize: 1 }).run({ stopping, deadline: stopping });
    expect(await db.tasks.list()).toHaveLength(3);
  });
});

test('without the table, everything names the forgotten migration', async () => {
  const tasks = createTasks({ sql: db.sql, kinds, schema: 'nowhere' });
  await expect(tasks.status()).rejects.toMatchObject({ code: 'RS_MIGRATE_PENDING' });
  await expect(db.sql.transaction((tx) => tasks.enqueue(tx, receipt))).rejects.toMatchObject({
    code: 'RS_MIGRATE_PENDING',
  });
});

function circle(): object {
  const self: Record<string, unknown> = {};
  self['self'] = self;
  return self;
}

function parseOrder(input: unknown): { id: string } {
  if (typeof (input as { id?: unknown }).id !== 'string') throw new Error('id must be a string');
  return input as { id: string };
}
