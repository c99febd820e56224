import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent } from '../../src/events.js';
import { createIdempotency, type HttpAnswer, type HttpRequest } from '../../src/idempotency/index.js';
import { TRANSITIONS } from '../../src/idempotency/states.js';
import { migrate } from '../../src/migrate/index.js';
import type { SqlPort } from '../../src/ports/sql.js';
import { hashKey } from '../../src/idempotency/key.js';

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url });
  await migrate(fromPg(pool));
});
beforeEach(() => pool.query('truncate replaysafe.idempotency_record'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const CREATED: HttpAnswer = { status: 201, headers: { 'content-type': 'text/plain' }, body: 'done' };
const request = (key: string): HttpRequest => ({
  method: 'POST',
  path: '/orders',
  query: '',
  headers: { 'idempotency-key': key },
  body: Buffer.alloc(0),
});

/** The port, with a hand on each statement: its name is in its leading comment. */
function watched(onStatement: (name: string, outside: boolean) => unknown = () => undefined): SqlPort<pg.PoolClient> {
  const port = fromPg(pool);
  const nameOf = (text: string): string => /replaysafe:idempotency\.(\w+)/.exec(text)?.[1] ?? text;
  return {
    ...port,
    query: async (text, params) => {
      const instead = (await onStatement(nameOf(text), true)) as
        Awaited<ReturnType<typeof port.query<never>>> | undefined;
      return instead ?? port.query(text, params);
    },
    transaction: (fn, options) =>
      port.transaction(async (tx) => {
        const query = tx.query.bind(tx);
        tx.query = async (text, params) => {
          await onStatement(nameOf(text), false);
          return query(text, params);
        };
        return fn(tx);
      }, options),
  };
}

describe('the protocol, statement by statement', () => {
  test('a first request looks, locks, claims and completes; a repetition only looks, outside a transaction', async () => {
    const statements: string[] = [];
    const idempotency = createIdempotency({
      sql: watched((name, outside) => void statements.push(outside ? name : `tx ${name}`)),
      scope: 'single-tenant',
    });
    await idempotency.handle(request('k'), async () => CREATED);
    expect(statements.splice(0)).toEqual(['read', 'tx lock', 'tx claim', 'tx complete']);
    const replay = await idempotency.handle(request('k'), async () => expect.unreachable());
    expect(replay.headers['idempotent-replayed']).toBe('true');
    expect(statements).toEqual(['read']);
  });

  test('P4: 0 claimed means look again: a record committed after our look is replayed, not a conflict', async () => {
    const idempotency = createIdempotency({ sql: fromPg(pool), scope: 'single-tenant' });
    let raced = false;
    const slow = createIdempotency({
      sql: watched(async (name, outside) => {
        if (name !== 'read' || !outside || raced) return undefined;
        raced = true;
        const nothing = { rows: [], rowCount: 0 };
        await idempotency.handle(request('raced'), async () => CREATED);
        return nothing;
      }),
      scope: 'single-tenant',
    });
    const answer = await slow.handle(request('raced'), async () => expect.unreachable());
    expect([answer.status, answer.headers['idempotent-replayed']]).toEqual([201, 'true']);
  });

  test('P4: 0 claimed and 0 found means loop: a record that vanished meanwhile leaves the key to us', async () => {
    const idempotency = createIdempotency({ sql: fromPg(pool), scope: 'single-tenant' });
    await idempotency.handle(request('vanishing'), async () => CREATED);
    let reads = 0;
    const late = createIdempotency({
      sql: watched(async (name) => {
        if (name !== 'read') return undefined;
        reads += 1;
        if (reads === 2) await pool.query('delete from replaysafe.idempotency_record');
        return reads === 1 ? { rows: [], rowCount: 0 } : undefined;
      }),
      scope: 'single-tenant',
    });
    const answer = await late.handle(request('vanishing'), async () => ({ ...CREATED, body: 'again' }));
    expect([answer.body, reads]).toEqual(['again', 2]);
  });

  test('a claim of somebody who did not take the lock is waited for no longer than for any lock', async () => {
    const keyHash = hashKey('single-tenant', 'unlocked');
    const other = await pool.connect();
    try {
      await other.query('begin');
      await other.query(
        `insert into replaysafe.idempotency_record (key_hash, scope, fp, fp_version, state) values ($1, 's', $1, 1, 'running')`,
        [keyHash],
      );
      const sql = fromPg(pool);
      const idempotency = createIdempotency({ sql, scope: 'single-tenant', lockTimeoutMs: 50, waitMs: 100 });
      const answer = await idempotency.handle(request('unlocked'), async () => expect.unreachable());
      expect([answer.status, String(answer.body)]).toEqual([409, expect.stringContaining('idempotency-in-progress')]);
    } finally {
      await other.query('rollback');
      other.release();
    }
  });

  test('the event stands between COMMIT and the answer', async () => {
    const idempotency = createIdempotency({ sql: fromPg(pool), scope: 'single-tenant' });
    let answered = false;
    const seen: Promise<{ rows: unknown[] }>[] = [];
    const listener = onEvent('idempotency.executed', () => {
      expect(answered).toBe(false);
      seen.push(pool.query(`select 1 from replaysafe.idempotency_record where state = 'completed'`));
    });
    try {
      await idempotency.handle(request('ordered'), async () => CREATED);
      answered = true;
    } finally {
      listener.unsubscribe();
    }
    expect((await Promise.all(seen)).map(({ rows }) => rows.length)).toEqual([1]);
  });

  test('another schema', async () => {
    await migrate(fromPg(pool), { schema: 'elsewhere' });
    const idempotency = createIdempotency({ sql: fromPg(pool), scope: 'single-tenant', schema: 'elsewhere' });
    await idempotency.handle(request('k'), async () => CREATED);
    const { rows } = await pool.query('select state from elsewhere.idempotency_record');
    expect(rows).toEqual([{ state: 'completed' }]);
  });
});

describe('the table', () => {
  const insert = (columns: Record<string, unknown>) => {
    const row = { key_hash: hashKey('s', 'k'), scope: 's', fp: hashKey('s', 'f'), fp_version: 1, ...columns };
    const names = Object.keys(row);
    const places = names.map((_, i) => `$${i + 1}`);
    return pool.query(
      `insert into replaysafe.idempotency_record (${names.join(', ')}) values (${places.join(', ')})`,
      Object.values(row),
    );
  };
  const now = new Date();
  const done = {
    state: 'completed',
    status: 201,
    headers: {},
    body: Buffer.alloc(0),
    completed_at: now,
    expires_at: now,
  };

  test.each([
    ['running', { state: 'running' }],
    ['running under a lease', { state: 'running', owner: 'me', locked_until: now, recovery_point: 'a', epoch: 2 }],
    ['completed', done],
    ['completed without its body', { ...done, body: null, body_omitted: true }],
    ['expired', { ...done, state: 'expired', headers: null, body: null }],
  ])('takes %s', async (_, columns) => {
    await insert(columns);
  });

  test.each([
    ['a state that does not exist', { state: 'done' }],
    ['running with an answer', { state: 'running', status: 201 }],
    ['running with half a lease', { state: 'running', owner: 'me' }],
    ['completed without a status', { ...done, status: null }],
    ['completed with a status that is never stored', { ...done, status: 500 }],
    ['completed without a word about its body', { ...done, body: null }],
    ['completed and still held', { ...done, owner: 'me', locked_until: now }],
    ['completed without an end', { ...done, expires_at: null }],
    ['a tombstone that still answers', { ...done, state: 'expired' }],
    ['a key in the clear', { state: 'running', key_hash: Buffer.from('key') }],
  ])('refuses %s', async (_, columns) => {
    await expect(insert(columns)).rejects.toMatchObject({ code: '23514' });
  });

  test('knows the states of the code', async () => {
    const { rows } = await pool.query<{ def: string }>(
      `select pg_get_constraintdef(oid) as def from pg_constraint
       where conname = 'idempotency_record_state' and connamespace = 'replaysafe'::regnamespace`,
    );
    const states = [...rows[0]!.def.matchAll(/'(\w+)'::text/g)].map(([, state]) => state);
    expect(new Set([...states, 'absent'])).toEqual(new Set(Object.keys(TRANSITIONS)));
  });
});
