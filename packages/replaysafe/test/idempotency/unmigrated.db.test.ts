import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createIdempotency, type HttpAnswer, type HttpRequest } from '../../src/idempotency/index.js';
import { migrate } from '../../src/migrate/index.js';
import { createOutbox } from '../../src/outbox/index.js';
import type { SqlPort } from '../../src/ports/sql.js';

let database: TestDatabase;
let pool: pg.Pool;
let logged: { level: string; code: unknown }[];
beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url });
});
beforeEach(async () => {
  await pool.query('drop schema if exists replaysafe cascade');
  logged = [];
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const REQUEST: HttpRequest = {
  method: 'POST',
  path: '/orders',
  query: '',
  headers: { 'idempotency-key': 'k' },
  body: Buffer.alloc(0),
};
const log = (level: string) => (fields: object) => {
  logged.push({ level, code: (fields as { code?: unknown }).code });
};
const guarded = (sql: SqlPort<pg.PoolClient> = fromPg(pool)) =>
  createIdempotency({
    sql,
    scope: 'single-tenant',
    logger: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
  });

function expectPending(answer: HttpAnswer): void {
  expect(answer.status).toBe(500);
  expect(answer.headers['retry-after']).toBeUndefined();
  expect(JSON.parse(String(answer.body))).toMatchObject({ code: 'RS_MIGRATE_PENDING', status: 500, retryable: false });
  expect(logged).toEqual([{ level: 'error', code: 'RS_MIGRATE_PENDING' }]);
}

test('without the table: not executed, not called an outage, not worth repeating, and logged as an error', async () => {
  expectPending(await guarded().handle(REQUEST, async () => expect.unreachable()));
});

test('the same where only the claim meets the missing table', async () => {
  const port = fromPg(pool);
  const blind = { ...port, query: async () => ({ rows: [], rowCount: 0 }) };
  expectPending(await guarded(blind).handle(REQUEST, async () => expect.unreachable()));
});

test('the same where the handler writes to an outbox that is missing', async () => {
  const sql = fromPg(pool);
  await migrate(sql);
  const outbox = createOutbox({ sql, schema: 'elsewhere' });
  const answer = await guarded(sql).handle(REQUEST, async ({ tx }) => {
    await outbox.enqueue(tx, { topic: 'orders', type: 'OrderConfirmed', payload: {} });
    return expect.unreachable();
  });
  expectPending(answer);
});

test.each([
  ['table', 'select * from no_such_table', '42P01'],
  ['schema', 'create table no_such_schema.t ()', '3F000'],
  ['function', 'select no_such_function()', '42883'],
])("a missing %s of the handler's own is the handler's error", async (_, text, state) => {
  await migrate(fromPg(pool));
  const handled = guarded().handle(REQUEST, async ({ tx }) => {
    await tx.query(text);
    return expect.unreachable();
  });
  await expect(handled).rejects.toMatchObject({ code: state });
  expect(logged).toEqual([]);
});
