import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { outboxSql } from '../../src/outbox/sql.js';
import { OUTBOX_STATES, STATE_COLUMNS } from '../../src/outbox/states.js';
import { sqlState } from '../../src/ports/sql.js';
import { TestOutbox } from './support.js';

let db: TestOutbox;
beforeAll(async () => {
  db = await TestOutbox.open();
});
afterAll(() => db.close());
beforeEach(() => db.pool.query('truncate replaysafe.outbox_event restart identity'));

const sql = outboxSql('"replaysafe"');
const TOKEN = '0198f000-0000-7000-8000-000000000001';

describe('the CHECK constraints say what the states say', () => {
  const VALUES = {
    claim_token: `'${TOKEN}'`,
    locked_until: 'now()',
    published_at: 'now()',
    next_attempt_at: 'now()',
    last_error: `'x'`,
  } as const;
  const columns = Object.keys(VALUES) as (keyof typeof VALUES)[];

  test.each(OUTBOX_STATES)('%s: each combination of its columns', async (state) => {
    for (let bits = 0; bits < 2 ** columns.length; bits++) {
      const has = (column: (typeof columns)[number]) => (bits & (1 << columns.indexOf(column))) !== 0;
      const allowed = columns.every((column) => {
        const demand = STATE_COLUMNS[state][column];
        return demand === undefined || demand === has(column);
      });
      const insert = db.pool.query(`insert into replaysafe.outbox_event
        (topic, event_type, status, ${columns.join(', ')})
        values ('t', 'e', '${state}', ${columns.map((column) => (has(column) ? VALUES[column] : 'null')).join(', ')})`);
      const outcome = await insert.then(
        () => 'taken',
        (error: unknown) => sqlState(error),
      );
      const given = columns.filter(has).join(', ') || 'nothing';
      expect(outcome, `${state} with ${given}`).toBe(allowed ? 'taken' : '23514');
    }
  });

  test('no other state, no more failures than attempts', async () => {
    const insert = (column: string, value: string) =>
      db.pool.query(`insert into replaysafe.outbox_event (topic, event_type, ${column}) values ('t', 'e', ${value})`);
    await expect(insert('status', `'SENT'`)).rejects.toMatchObject({ code: '23514' });
    await expect(insert('failures', '1')).rejects.toMatchObject({ code: '23514' });
    await expect(insert('attempts', '-1')).rejects.toMatchObject({ code: '23514' });
  });
});

test('the shard of a key is always the same, and 32 shards are used', async () => {
  const { rows } = await db.pool.query<{ shards: number; twofold: number }>(`
    with written as (
      insert into replaysafe.outbox_event (topic, event_type, aggregate_id)
      select 't', 'e', 'key-' || (n % 1000) from generate_series(1, 2000) n
      returning aggregate_id, shard
    )
    select count(distinct shard)::int as shards,
      (select count(*)::int from (select from written group by aggregate_id having count(distinct shard) > 1) t) as twofold
    from written`);
  expect(rows[0]).toEqual({ shards: 32, twofold: 0 });
});

test('a sequence that went backwards (restore, failover) does not refuse the business transactions', async () => {
  await db.writeMany(3);
  await db.pool.query(`alter table replaysafe.outbox_event alter column seq restart with 1`);
  await db.writeMany(3);
  expect((await db.rows()).map(({ seq }) => Number(seq))).toEqual([1, 1, 2, 2, 3, 3]);
});

/** Every node of a plan, from the top. */
function nodes(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

async function planOf(statement: string, params: readonly unknown[], analyze: boolean): Promise<PlanNode[]> {
  const client = await db.pool.connect();
  try {
    await client.query('begin');
    const { rows } = await client.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
      `explain (format json, costs off${analyze ? ', analyze, timing off' : ''}) ${statement}`,
      [...params],
    );
    return nodes(rows[0]!['QUERY PLAN'][0]!.Plan);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

/** A heap scan that is fed by the primary key alone. */
function isByIds(node: PlanNode): boolean {
  const feeds = node.Plans ?? [];
  return node['Node Type'] === 'Bitmap Heap Scan' && feeds.every((feed) => feed['Index Name'] === 'outbox_event_pkey');
}

describe.each([
  ['single-phase', sql.lock, [50, 25]],
  ['two-phase', sql.claim, [50, 25, TOKEN, 30_000]],
])('the plan of the claim, %s: no sort, the two indexes in their order, bounded rows', (_, statement, params) => {
  const check = async (analyze: boolean) => {
    const plan = await planOf(statement, params, analyze);
    expect(plan.filter((node) => node['Node Type'].includes('Sort'))).toEqual([]);
    // The rows that are claimed may be found again by their ids in any way; the lanes must be walked in their order.
    const walked = plan.filter((node) => node['Index Name'] !== 'outbox_event_pkey' && !isByIds(node));
    expect(walked.filter((node) => node['Node Type'] === 'Seq Scan' || node['Node Type'].startsWith('Bitmap'))).toEqual(
      [],
    );
    const indexes = new Set(plan.flatMap((node) => node['Index Name'] ?? []));
    expect([...indexes].filter((name) => name !== 'outbox_event_pkey').sort()).toEqual([
      'outbox_event_fresh',
      'outbox_event_waiting',
    ]);
    if (!analyze) return;
    for (const node of plan) {
      expect((node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 1)).toBeLessThanOrEqual(100);
      expect(node['Rows Removed by Filter'] ?? 0).toBeLessThanOrEqual(100);
    }
  };
  const fill = (open: number, waiting: number, published: number) =>
    db.pool.query(
      `insert into replaysafe.outbox_event
         (topic, event_type, aggregate_id, status, next_attempt_at, claim_token, published_at)
       select 't', 'e', 'key-' || (n % 100),
         case kind when 'published' then 'PUBLISHED' else 'PENDING' end,
         case kind when 'waiting' then now() + (n % 2 - 0.5) * interval '1 hour' end,
         case kind when 'published' then gen_random_uuid() end,
         case kind when 'published' then now() end
       from (values ('open', $1::int), ('waiting', $2::int), ('published', $3::int)) k (kind, count),
         generate_series(1, count) n
       order by random()`,
      [open, waiting, published],
    );

  test('with a backlog, many rows waiting and many published', async () => {
    await fill(20_000, 20_000, 20_000);
    await db.pool.query('analyze replaysafe.outbox_event');
    await check(true);
  });

  test('when the table was analysed while it was almost empty', async () => {
    await fill(5, 5, 0);
    await db.pool.query('analyze replaysafe.outbox_event');
    await fill(20_000, 20_000, 20_000);
    await check(true);
  });

  test('when it was never analysed', async () => {
    await fill(10_000, 10_000, 10_000);
    await check(true);
  });
});

test('expired leases are found by their index, however many rows are published', async () => {
  await db.writeMany(100);
  await db.pool.query(`insert into replaysafe.outbox_event (topic, event_type, status, claim_token, published_at)
    select 't', 'e', 'PUBLISHED', gen_random_uuid(), now() from generate_series(1, 20000)`);
  await db.pool.query('analyze replaysafe.outbox_event');
  const plan = await planOf(sql.recover, [500], false);
  expect(plan.flatMap((node) => node['Index Name'] ?? [])).toContain('outbox_event_leased');
  expect(plan.filter((node) => node['Node Type'] === 'Seq Scan' || node['Node Type'] === 'Sort')).toEqual([]);
});

test('the earlier open row of a key is found by one index, published rows of the key out of the way', async () => {
  await db.pool.query(`insert into replaysafe.outbox_event
      (topic, event_type, aggregate_id, status, claim_token, published_at)
    select 't', 'e', 'key', 'PUBLISHED', gen_random_uuid(), now() from generate_series(1, 20000)`);
  await db.writeMany(100, { key: 'key' });
  await db.pool.query('analyze replaysafe.outbox_event');
  const plan = await planOf(
    `select from replaysafe.outbox_event e
     where e.status <> 'PUBLISHED' and e.aggregate_id = $1 and e.seq < $2 limit 1`,
    ['key', 1_000_000],
    false,
  );
  expect(plan.flatMap((node) => node['Index Name'] ?? [])).toEqual(['outbox_event_open_key']);
});
