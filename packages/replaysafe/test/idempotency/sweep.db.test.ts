import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent } from '../../src/events.js';
import { createIdempotency, createIdempotencySweep, type HttpRequest } from '../../src/idempotency/index.js';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { migrate } from '../../src/migrate/index.js';
import type { SqlPort } from '../../src/ports/sql.js';
import { waitForEvent } from '../../src/testing/index.js';

let database: TestDatabase;
let pool: pg.Pool;
let sql: SqlPort<pg.PoolClient>;
beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url });
  sql = fromPg(pool);
  await migrate(sql);
});
beforeEach(() => pool.query('truncate replaysafe.idempotency_record'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const DAY_MS = 86_400_000;
const never = (): { stopping: AbortSignal; deadline: AbortSignal } => ({
  stopping: new AbortController().signal,
  deadline: new AbortController().signal,
});

/** So many records of a state, whose answers were due to be forgotten so many days ago. */
const write = (state: 'completed' | 'running', count: number, daysAgo = 0) =>
  pool.query(
    `insert into replaysafe.idempotency_record
       (key_hash, scope, fp, fp_version, state, status, headers, body, body_omitted, completed_at, expires_at)
     select sha256(random()::text::bytea), 'single-tenant', sha256('x'), 1, $1,
       case when $1 = 'completed' then 201 end, case when $1 = 'completed' then '{}'::jsonb end,
       case when $1 = 'completed' then 'body'::bytea end, false,
       case when $1 = 'completed' then now() - interval '60 days' end,
       case when $1 = 'completed' then now() - $3 * interval '1 day' end
     from generate_series(1, $2)`,
    [state, count, daysAgo],
  );
const states = async (): Promise<Record<string, number>> => {
  const { rows } = await pool.query<{ state: string; count: number }>(
    'select state, count(*)::int as count from replaysafe.idempotency_record group by state',
  );
  return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
};

describe('the sweep of stored answers', () => {
  test('forgets answers whose time is over, deletes keys that were forgotten long ago, and leaves the others alone', async () => {
    await write('completed', 3, -1);
    await write('completed', 4, 1);
    await write('completed', 5, 31);
    await write('running', 2);
    await createIdempotencySweep({ sql }).run(never());
    expect(await states()).toEqual({ completed: 3, expired: 4, running: 2 });
    const { rows } = await pool.query(
      `select distinct headers, body from replaysafe.idempotency_record where state = 'expired'`,
    );
    expect(rows).toEqual([{ headers: null, body: null }]);
  });

  test('goes batch by batch, one transaction each', async () => {
    await write('completed', 25, 1);
    const batches: object[] = [];
    const subscription = onEvent('idempotency.swept', (swept) => batches.push(swept));
    await createIdempotencySweep({ sql, batchSize: 10 }).run(never());
    subscription.unsubscribe();
    expect(batches).toEqual([10, 10, 5].map((expired) => ({ expired, deleted: 0 })));
  });

  test('neither waits for a row that somebody has locked, nor touches it', async () => {
    await write('completed', 2, 1);
    const client = await pool.connect();
    try {
      await client.query('begin');
      await client.query('select from replaysafe.idempotency_record limit 1 for update');
      await createIdempotencySweep({ sql }).run(never());
      expect(await states()).toEqual({ completed: 1, expired: 1 });
      await client.query('commit');
    } finally {
      client.release();
    }
  });

  test('reads the index in its order, and no more than a batch of it', async () => {
    await write('completed', 500, -1);
    await write('completed', 50, 1);
    await pool.query('analyze replaysafe.idempotency_record');
    const { idempotencySql } = await import('../../src/idempotency/sql.js');
    const texts = idempotencySql('replaysafe');
    for (const [text, params] of [
      [texts.expire, [10]],
      [texts.forget, [10, DAY_MS]],
    ] as const) {
      const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, [...params]);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toContain('idempotency_record_retention');
      expect(plan).not.toContain('Sort');
    }
  });

  test('R-SHUT-SCHED-1 a stop ends it between two batches; the next sweep goes on', async () => {
    await write('completed', 30, 1);
    const lifecycle = createLifecycle({ lameDuckMs: 0 });
    const subscription = onEvent('idempotency.swept', () => void lifecycle.stop());
    const ran = waitForEvent('lifecycle.worker-ran');
    lifecycle.worker(createIdempotencySweep({ sql, batchSize: 10, everyMs: 1 }), { lease: { sql } });
    lifecycle.started();
    expect((await ran).error).toBeUndefined();
    subscription.unsubscribe();
    expect((await lifecycle.stop()).exitCode).toBe(0);
    expect(await states()).toEqual({ completed: 20, expired: 10 });
    await createIdempotencySweep({ sql, batchSize: 10 }).run(never());
    expect(await states()).toEqual({ expired: 30 });
  });

  test('a key whose answer was swept is refused, not executed a second time; a deleted one is a new key', async () => {
    const idempotency = createIdempotency({ sql, scope: 'single-tenant', retentionMs: 1 });
    const request: HttpRequest = {
      method: 'POST',
      path: '/orders',
      query: '',
      headers: { 'idempotency-key': 'k' },
      body: Buffer.alloc(0),
    };
    let runs = 0;
    const run = async () => {
      runs++;
      return { status: 201, headers: {}, body: 'done' };
    };
    await idempotency.handle(request, run);
    const sweep = createIdempotencySweep({ sql, rememberMs: DAY_MS });
    while ((await states())['expired'] !== 1) await sweep.run(never());
    expect((await idempotency.handle(request, run)).status).toBe(409);
    expect(runs).toBe(1);
    await createIdempotencySweep({ sql, rememberMs: 0 }).run(never());
    expect((await idempotency.handle(request, run)).status).toBe(201);
    expect(runs).toBe(2);
  });

  test('says so when the table is missing', async () => {
    await expect(createIdempotencySweep({ sql, schema: 'elsewhere' }).run(never())).rejects.toMatchObject({
      code: 'RS_MIGRATE_PENDING',
    });
  });
});
