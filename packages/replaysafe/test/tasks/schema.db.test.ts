import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sqlState } from '../../src/ports/sql.js';
import { taskSql } from '../../src/tasks/sql.js';
import { STATE_COLUMNS, TASK_STATES } from '../../src/tasks/states.js';
import { TestTasks } from './support.js';

let db: TestTasks;
beforeAll(async () => {
  db = await TestTasks.open();
});
afterAll(() => db.close());
beforeEach(() => db.clear());

const sql = taskSql('"replaysafe"');
const TOKEN = '0198f000-0000-7000-8000-000000000001';

describe('the CHECK constraints say what the states say', () => {
  const VALUES = {
    claim_token: `'${TOKEN}'`,
    locked_until: 'now()',
    finished_at: 'now()',
    result: `'1'`,
    last_error: `'x'`,
  } as const;
  const columns = Object.keys(VALUES) as (keyof typeof VALUES)[];

  test.each(TASK_STATES)('%s: each combination of its columns', async (state) => {
    for (let bits = 0; bits < 2 ** columns.length; bits++) {
      const has = (column: (typeof columns)[number]) => (bits & (1 << columns.indexOf(column))) !== 0;
      const allowed = columns.every((column) => {
        const demand = STATE_COLUMNS[state][column];
        return demand === undefined || demand === has(column);
      });
      const insert = db.pool.query(`insert into replaysafe.task
        (kind, key, input, max_failures, status, ${columns.join(', ')})
        values ('t', 'k-${bits}', '{}', 1, '${state}', ${columns.map((column) => (has(column) ? VALUES[column] : 'null')).join(', ')})`);
      const outcome = await insert.then(
        () => 'taken',
        (error: unknown) => sqlState(error),
      );
      const given = columns.filter(has).join(', ') || 'nothing';
      expect(outcome, `${state} with ${given}`).toBe(allowed ? 'taken' : '23514');
    }
  });
});

describe('the claim', () => {
  test('reads its index in order, no further than its limit, whatever waits or belongs to other kinds', async () => {
    await db.pool.query(`insert into replaysafe.task (kind, key, input, max_failures, next_attempt_at)
      select 'k' || (n % 4), n::text, '{}', 1,
        clock_timestamp() + case when n % 3 = 0 then interval '1 hour' else interval '-1 hour' end
      from generate_series(1, 40000) n`);
    await db.pool.query('analyze replaysafe.task');
    const { rows } = await db.pool.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, format json) ${sql.claim}`,
      ['{k1,k2}', 50, TOKEN, 1_000],
    );
    const plan = nodes(rows[0]!['QUERY PLAN'][0].Plan);
    const scans = plan.filter((node) => node['Index Name'] === 'task_due');
    expect(scans.length).toBeGreaterThan(0);
    for (const scan of scans) {
      expect(scan['Actual Rows']).toBeLessThanOrEqual(50);
      expect(scan['Rows Removed by Filter'] ?? 0).toBe(0);
    }
    expect(plan.filter((node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'task')).toEqual([]);
  });
});

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Index Name'?: string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows'?: number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly PlanNode[];
}

function nodes(plan: PlanNode): PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodes)];
}
