import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROCESSED_STATES } from '../../src/inbox/states.js';
import { openShop, type Shop } from './harness.js';

let shop: Shop;

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());

const insert = (columns: Record<string, unknown>) => {
  const row = { consumer: 'c', event_id: `e-${Math.random()}`, status: 'processed', ...columns };
  const names = Object.keys(row);
  return shop.pool.query(
    `insert into replaysafe.processed_event (${names.join(', ')}) values (${names.map((_, n) => `$${n + 1}`).join(', ')})`,
    Object.values(row),
  );
};

test('the states of the code are those of the table', async () => {
  const columns = { processed: {}, parked: { error_code: 'RS_INBOX_ATTEMPTS_EXHAUSTED' } };
  for (const status of PROCESSED_STATES) await insert({ status, ...columns[status] });
  await expect(insert({ status: 'running' })).rejects.toMatchObject({ constraint: 'processed_event_status_ck' });
});

test.each([
  [{ status: 'parked' }, 'processed_event_status_ck'],
  [{ status: 'processed', error_code: 'x' }, 'processed_event_status_ck'],
  [{ attempt: 0 }, 'processed_event_attempt_ck'],
  [{ event_id: '' }, 'processed_event_event_id_ck'],
  [{ event_id: 'x'.repeat(256) }, 'processed_event_event_id_ck'],
  [{ consumer: '' }, 'processed_event_consumer_ck'],
])('%j is refused by %s', async (columns, constraint) => {
  await expect(insert(columns)).rejects.toMatchObject({ constraint });
});

test('the table can become one partitioned by event_id: the key holds it, and it compares by bytes', async () => {
  await shop.pool.query(
    `create table partitioned (like replaysafe.processed_event including all) partition by range (event_id)`,
  );
  const { rows } = await shop.pool.query<{ collation: string }>(
    `select collation_name as collation from information_schema.columns
     where table_schema = 'replaysafe' and table_name = 'processed_event' and column_name = 'event_id'`,
  );
  expect(rows).toEqual([{ collation: 'C' }]);
});

test('the statements find their rows by the primary key', async () => {
  await shop.pool.query(
    `insert into replaysafe.processed_event (consumer, event_id, status)
     select 'big', 'e-' || n, 'processed' from generate_series(1, 20000) n`,
  );
  await shop.pool.query('analyze replaysafe.processed_event');
  const { inboxSql } = await import('../../src/inbox/sql.js');
  const statements = inboxSql('replaysafe');
  const params: [string, unknown[]][] = [
    [statements.settled, ['big', ['e-1', 'e-2']]],
    [statements.verify, ['big', ['e-1', 'e-2']]],
    [statements.takeBack, ['big', ['e-1', 'e-2'], '3']],
  ];
  for (const [text, values] of params) {
    const { rows } = await shop.pool.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain('processed_event_pk');
    expect(plan).not.toContain('Seq Scan');
  }
});
