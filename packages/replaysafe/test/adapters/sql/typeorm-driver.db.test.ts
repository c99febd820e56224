import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import { DataSource, EntitySchema, EventSubscriber, type EntityManager, type EntitySubscriberInterface } from 'typeorm';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import { fromTypeorm } from '../../../src/adapters/sql/typeorm.js';
import type { ReplaysafeError } from '../../../src/errors.js';
import { createIdempotency } from '../../../src/idempotency/index.js';
import { migrate } from '../../../src/migrate/index.js';
import { createOutbox } from '../../../src/outbox/index.js';

interface Order {
  id: string;
  note: string;
}

// eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- how TypeORM documents it
const ORDER = new EntitySchema<Order>({
  name: 'purchase',
  columns: { id: { type: String, primary: true }, note: { type: String } },
});

const heard: string[] = [];
let failing = false;
class Told implements EntitySubscriberInterface {
  afterTransactionStart(): void {
    heard.push('start');
  }
  beforeTransactionCommit(): void {
    heard.push('committing');
  }
  afterTransactionCommit(): void {
    heard.push('committed');
    if (failing) throw new Error('too late');
  }
  afterTransactionRollback(): void {
    heard.push('rolled back');
  }
}

EventSubscriber()(Told);

let database: TestDatabase;
let observer: pg.Pool;
let source: DataSource;

beforeEach(async () => {
  database = await createDatabase(inject('databaseUrl'));
  observer = new pg.Pool({ connectionString: database.url, max: 1 });
  await migrate(fromPg(observer));
  source = await new DataSource({
    type: 'postgres',
    url: database.url,
    extra: { max: 2 },
    entities: [ORDER],
    subscribers: [Told],
    synchronize: true,
  }).initialize();
  heard.length = 0;
});

afterEach(async () => {
  if (source.isInitialized) await source.destroy();
  await observer.end();
  await database.drop();
});

const event = { topic: 'orders', key: 'a', type: 'OrderConfirmed', payload: { id: 'a' } };
const count = async (table: string): Promise<number> =>
  Number((await observer.query<{ count: string }>(`select count(*) from ${table}`)).rows[0]!.count);

test("enqueue takes part in TypeORM's own transaction: both are committed, or neither", async () => {
  const outbox = createOutbox({ sql: fromTypeorm(source) });
  await source.transaction(async (manager) => {
    await manager.insert(ORDER, { id: 'a', note: 'kept' });
    await outbox.enqueue(manager, event);
    expect(await count('purchase')).toBe(0);
  });
  const undone = source.transaction(async (manager) => {
    await manager.insert(ORDER, { id: 'b', note: 'undone' });
    await outbox.enqueue(manager, event);
    throw new Error('business says no');
  });
  await expect(undone).rejects.toThrow('business says no');
  expect([await count('purchase'), await count('replaysafe.outbox_event')]).toEqual([1, 1]);
});

test('outside a transaction enqueue is refused and says what to pass', async () => {
  const outbox = createOutbox({ sql: fromTypeorm(source) });
  const runner = source.createQueryRunner();
  await runner.connect();
  const refused = async (given: unknown): Promise<string> => {
    const thrown: unknown = await (async () => outbox.enqueue(given as EntityManager, event))().catch(
      (error: unknown) => error,
    );
    expect(thrown).toMatchObject({ code: 'RS_OUTBOX_NO_TRANSACTION' });
    return (thrown as ReplaysafeError).message;
  };
  expect(await refused(source.manager)).toMatch(/no query runner/);
  expect(await refused(source)).toMatch(/the DataSource/);
  expect(await refused(source.getRepository(ORDER))).toMatch(/no EntityManager/);
  expect(await refused(runner.manager)).toMatch(/no transaction is open/);
  await runner.startTransaction();
  await outbox.enqueue(runner.manager, event);
  await runner.commitTransaction();
  expect(await refused(runner.manager)).toMatch(/no transaction is open/);
  await runner.release();
  expect(await refused(runner.manager)).toMatch(/released/);
  expect(await count('replaysafe.outbox_event')).toBe(1);
});

test('the handle is an EntityManager: entities, repositories and nested transactions are in the transaction', async () => {
  await fromTypeorm(source).transaction(async ({ handle, xid }) => {
    const typed: EntityManager = handle;
    await typed.save(ORDER, { id: 'a', note: 'saved' });
    await typed.getRepository(ORDER).insert({ id: 'b', note: 'inserted' });
    const nested = typed.transaction(async (inner) => {
      await inner.insert(ORDER, { id: 'c', note: 'undone' });
      await inner.insert(ORDER, { id: 'a', note: 'twice' });
    });
    await expect(nested).rejects.toThrow(/duplicate key/);
    const found = await typed.find(ORDER, { order: { id: 'ASC' } });
    expect(found.map(({ id }) => id)).toEqual(['a', 'b']);
    const [row] = await typed.query<{ xid: string }[]>('select pg_current_xact_id()::text as xid');
    expect(row!.xid).toBe(xid);
    expect(await count('purchase')).toBe(0);
  });
  expect(await count('purchase')).toBe(2);
});

test('a violation that careless code swallows does not commit silently, also through a repository', async () => {
  const work = fromTypeorm(source).transaction(async ({ handle }) => {
    await handle.insert(ORDER, { id: 'a', note: 'first' });
    await handle.insert(ORDER, { id: 'a', note: 'second' }).catch(() => undefined);
  });
  await expect(work).rejects.toMatchObject({ code: 'RS_TX_ABORTED' });
  expect(await count('purchase')).toBe(0);
});

test('subscribers hear of the transaction; one that fails behind the commit does not make it a failure', async () => {
  const sql = fromTypeorm(source);
  failing = true;
  expect(await sql.transaction(async () => 1)).toBe(1);
  failing = false;
  expect(heard).toEqual(['start', 'committing', 'committed']);
  heard.length = 0;
  await expect(sql.transaction(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(heard).toEqual(['start', 'rolled back']);
});

test('the callback cannot give the connection back', async () => {
  const sql = fromTypeorm(source);
  const work = sql.transaction(async ({ handle }) => {
    await handle.insert(ORDER, { id: 'a', note: 'lost' });
    await handle.queryRunner!.release();
  });
  await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/^RS_(TX_LOST|SQL_UNAVAILABLE)$/) as string });
  expect(await count('purchase')).toBe(0);
  expect((await sql.query('select 1')).rowCount).toBe(1);
});

test('a DataSource that is destroyed under a transaction ends, and nothing is committed', async () => {
  const work = fromTypeorm(source).transaction(async ({ handle }) => {
    await handle.insert(ORDER, { id: 'a', note: 'lost' });
    await source.destroy();
  });
  await expect(work).rejects.toMatchObject({ code: expect.stringMatching(/^RS_(TX_LOST|SQL_UNAVAILABLE)$/) as string });
  expect(await count('purchase')).toBe(0);
});

test('connections go back: TypeORM holds none of them afterwards', async () => {
  const sql = fromTypeorm(source);
  for (let i = 0; i < 10; i++) await sql.transaction((tx) => tx.query('select 1'));
  await sql.query('select 1');
  const { connectedQueryRunners } = source.driver as unknown as { connectedQueryRunners: unknown[] };
  expect(connectedQueryRunners).toEqual([]);
});

test('idempotency takes it: effect and answer are in one transaction, and the context gives the EntityManager', async () => {
  const idempotency = createIdempotency({ sql: fromTypeorm(source), scope: 'single-tenant' });
  const headers = { 'idempotency-key': 'k1', 'content-type': 'application/json' };
  const request = { method: 'POST', path: '/orders', query: '', headers, body: Buffer.from('{}') };
  const order = (fails: boolean) =>
    idempotency.handle(request, async ({ tx }) => {
      await tx.insert(ORDER, { id: 'a', note: 'once' });
      if (fails) throw new Error('business says no');
      return { status: 201, headers: {}, body: 'a' };
    });
  await expect(order(true)).rejects.toThrow('business says no');
  expect(await count('purchase')).toBe(0);
  expect((await order(false)).status).toBe(201);
  const again = await order(false);
  expect([again.status, Buffer.from(again.body ?? '').toString()]).toEqual([201, 'a']);
  expect(await count('purchase')).toBe(1);
});

test('what is no DataSource of PostgreSQL, and options that do not exist, are refused', () => {
  const codeOf = (work: () => unknown): string | undefined => {
    try {
      work();
      return undefined;
    } catch (error) {
      return (error as ReplaysafeError).code;
    }
  };
  expect(codeOf(() => fromTypeorm(observer as unknown as DataSource))).toBe('RS_OPTION_INVALID');
  const mysql = {
    options: { type: 'mysql' },
    manager: source.manager,
    createQueryRunner: () => source.createQueryRunner(),
  };
  expect(codeOf(() => fromTypeorm(mysql))).toBe('RS_OPTION_INVALID');
  expect(codeOf(() => fromTypeorm(source, { connectionCheck: 1 } as object))).toBe('RS_OPTION_UNKNOWN');
});
