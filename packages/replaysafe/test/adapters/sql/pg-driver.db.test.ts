import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import type { ReplaysafeError } from '../../../src/errors.js';

let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
});

afterEach(async () => {
  if (!pool.ended) await pool.end();
  await database.drop();
});

const columns = "select 1 as one, 'b' as two";

test('the handle is the client in all but its end: configs, callbacks, query objects, events and type parsers', async () => {
  const config = { text: 'select $1::int as n', rowMode: 'array' as const };
  await fromPg(pool).transaction(async ({ handle }) => {
    const typed: pg.PoolClient = handle;
    expect(typed).toBeInstanceOf(pg.Client);
    expect((await typed.query({ ...config, values: [1] })).rows).toEqual([[1]]);
    expect((await typed.query(config, [2])).rows).toEqual([[2]]);
    expect(Object.keys(config)).toEqual(['text', 'rowMode']);
    const called = await new Promise<pg.QueryResult>((resolve, reject) => {
      typed.query(columns, (error: Error | null, result) => {
        if (error) reject(error);
        else resolve(result);
      });
    });
    expect(called.fields.map((field) => field.name)).toEqual(['one', 'two']);
    const submitted = typed.query(new pg.Query(columns));
    const row = await new Promise((resolve) => submitted.once('row', resolve));
    expect(row).toEqual({ one: 1, two: 'b' });
    expect(typed.escapeIdentifier('a"b')).toBe('"a""b"');
  });
});

test('the callback cannot give the connection back', async () => {
  const sql = fromPg(pool);
  for (const verb of ['release', 'end', 'connect'] as const) {
    await expect(sql.transaction(async ({ handle }) => handle[verb]())).rejects.toMatchObject({ code: 'RS_TX_LOST' });
  }
  expect(pool.totalCount).toBe(1);
});

test('a client that came back inside a transaction is dropped, not joined', async () => {
  await pool.query('create table written (by text)');
  const careless = await pool.connect();
  await careless.query('begin');
  await careless.query("insert into written values ('careless')");
  careless.release();
  await fromPg(pool).transaction((tx) => tx.query("insert into written values ('ours')"));
  expect((await pool.query('select by from written')).rows).toEqual([{ by: 'ours' }]);
});

test('the same, where the driver does not tell the status', async () => {
  pool.on('connect', (client) => Object.assign(client, { getTransactionStatus: undefined }));
  const careless = await pool.connect();
  await careless.query('begin');
  careless.release();
  const sql = fromPg(pool);
  await expect(sql.transaction(async () => 1)).rejects.toMatchObject({ code: 'RS_SQL_UNAVAILABLE' });
  expect(await sql.transaction(async () => 2)).toBe(2);
});

test('join refuses a client that cannot tell whether it is in a transaction', async () => {
  const client = await pool.connect();
  try {
    await client.query('begin');
    Object.assign(client, { getTransactionStatus: undefined });
    const attempt = () => fromPg(pool).join(client);
    expect(attempt).toThrow(expect.objectContaining({ code: 'RS_OUTBOX_NO_TRANSACTION' }));
    expect(attempt).toThrow(/8\.21/);
  } finally {
    client.release(true);
  }
});

test('join says what is wrong with a pool', () => {
  expect(() => fromPg(pool).join(pool as unknown as pg.PoolClient)).toThrow(/this is a pool/);
});

test('a server that has no client_connection_check_interval is asked once', async () => {
  const sent: string[] = [];
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (text: string, ...rest: unknown[]) => unknown;
    Object.assign(client, {
      query: (text: string, ...rest: unknown[]) => {
        sent.push(text);
        return query(text.replace('client_connection_check_interval', 'no_such_setting'), ...rest);
      },
    });
  });
  const sql = fromPg(pool);
  expect(await sql.transaction(async () => 1)).toBe(1);
  expect(await sql.transaction(async () => 2)).toBe(2);
  expect(sent.filter((text) => text.includes('client_connection_check_interval'))).toHaveLength(1);
});

test('a parameter that the driver cannot serialise does not fail the transaction of one who catches it', async () => {
  const unserialisable = {
    toPostgres: () => {
      throw new Error('no');
    },
  };
  const value = await fromPg(pool).transaction(async (tx) => {
    await expect(tx.query('select $1::text', [unserialisable])).rejects.toThrow('no');
    expect(tx.failure).toBeUndefined();
    return (await tx.query<{ n: number }>('select 1 as n')).rows[0]?.n;
  });
  expect(value).toBe(1);
});

test('an idle connection that dies does not end the process, and is told to the logger at info', async () => {
  const told: string[] = [];
  const ignore = () => undefined;
  const logger = {
    debug: ignore,
    warn: ignore,
    error: ignore,
    info: (_: object, message: string) => told.push(message),
  };
  const sql = fromPg(pool, { logger });
  const { rows } = await sql.query<{ pid: number }>('select pg_backend_pid() as pid');
  const removed = new Promise((resolve) => pool.once('remove', resolve));
  const other = new pg.Client(database.url);
  await other.connect();
  await other.query('select pg_terminate_backend($1)', [rows[0]!.pid]);
  await other.end();
  await removed;
  expect(told).toEqual(['an idle database connection was lost']);
  expect((await sql.query('select 1')).rowCount).toBe(1);
});

test('nothing is left on a client that has been given back', async () => {
  const sql = fromPg(pool);
  await sql.query('select 1');
  const client = await pool.connect();
  const counts = () => ['error', 'end', 'notice'].map((name) => client.listenerCount(name));
  const before = counts();
  client.release();
  for (let i = 0; i < 20; i++) await sql.transaction((tx) => tx.query('select 1'));
  expect(await pool.connect()).toBe(client);
  expect(counts()).toEqual(before);
  client.release();
});

test('a pool that has been ended is unavailable', async () => {
  const sql = fromPg(pool);
  await pool.end();
  await expect(sql.query('select 1')).rejects.toMatchObject({ code: 'RS_SQL_UNAVAILABLE' });
});

test('what is no pool, and options that do not exist, are refused', () => {
  const refused = (work: () => unknown): string | undefined => {
    try {
      work();
      return undefined;
    } catch (error) {
      return (error as ReplaysafeError).code;
    }
  };
  expect(refused(() => fromPg({} as unknown as pg.Pool))).toBe('RS_OPTION_INVALID');
  expect(refused(() => fromPg(pool, { connectionCheck: 1 } as object))).toBe('RS_OPTION_UNKNOWN');
});
