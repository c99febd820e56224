import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { inboxSql } from '../../src/inbox/sql.js';
import { apply, offsetIs, openShop, run, type Handle, type Shop } from './harness.js';
import { InProcessBroker } from './in-process-broker.js';

let shop: Shop;
const statements = inboxSql('replaysafe');

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());
beforeEach(() => shop.empty());

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);

function shuffled<T>(list: readonly T[], seed: number): T[] {
  let state = seed;
  const next = (): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) / 2_147_483_648;
  return list
    .map((value) => ({ value, at: next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

/** Each client inserts all ids, each in an order of its own; says how many were chosen as deadlock victims. */
async function deadlocks(statement: string, clients: number, count: number): Promise<number> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: clients }, (_, n) =>
      shop.sql.transaction(
        (tx) => tx.query(statement, ['rival', shuffled(ids(count), n + 1), Array.from({ length: count }, () => 1)]),
        { lockTimeoutMs: 20_000, statementTimeoutMs: 20_000 },
      ),
    ),
  );
  return outcomes.filter((outcome) => outcome.status === 'rejected').length;
}

test('P13: eight clients with the same ids, each in another order, do not deadlock', async () => {
  for (let round = 0; round < 5; round++) {
    expect(await deadlocks(statements.claim, 8, 500)).toBe(0);
    await shop.pool.query('delete from replaysafe.processed_event');
  }
});

test('P13: without the sort they do, so the test above can fail', async () => {
  const unsorted = statements.claim.replace(/order by[^\n]*\n/, '');
  expect(unsorted).not.toBe(statements.claim);
  let victims = 0;
  for (let round = 0; round < 20 && victims === 0; round++) {
    victims += await deadlocks(unsorted, 8, 500);
    await shop.pool.query('delete from replaysafe.processed_event');
  }
  expect(victims).toBeGreaterThan(0);
});

test('two instances that are given the same events apply each once, and neither fails', async () => {
  const [first, second] = [new InProcessBroker(), new InProcessBroker()];
  first.send(...ids(300).map((id) => ({ id })));
  second.send(...shuffled(ids(300), 7).map((id) => ({ id })));
  await using one = await run(shop, first, { batchSize: 40 });
  await using other = await run(shop, second, { batchSize: 40 });
  // Both write into the diary of their common name.
  await other.diary.until(() => [first, second].every((broker) => broker.committed.get('orders/0') === 300n));
  expect((await shop.effects()).sort()).toEqual(ids(300));
  expect(one.diary.of('inbox.failed')).toEqual([]);
});

test('a zombie that still holds the dedup rows is waited for, and no event is blamed for it', async () => {
  const broker = new InProcessBroker();
  broker.send(...ids(3).map((id) => ({ id })));
  const zombie = await shop.pool.connect();
  await zombie.query('begin');
  await zombie.query(statements.claim, ['billing', ids(3), [1, 1, 1]]);
  await using running = await run(
    { sql: { ...shop.sql, transaction: (fn, options) => shop.sql.transaction(fn, { ...options, lockTimeoutMs: 30 }) } },
    broker,
    { maxAttempts: 1, maxContentions: 1 },
  );
  await running.diary.until(() => running.diary.of('inbox.failed').length > 4);
  await zombie.query('rollback');
  zombie.release();
  await offsetIs(running, 3);
  expect(await shop.effects()).toEqual(ids(3));
  expect(running.diary.of('inbox.failed').every((event) => event.infrastructure)).toBe(true);
});

test('handlers that deadlock with each other are tried again, none is given up', async () => {
  await shop.pool.query("insert into guarded values ('x'), ('y')");
  const lock = (ctx: Parameters<Handle>[1], id: string) =>
    ctx.tx.query('select from guarded where event_id = $1 for update', [id]);
  let holding = 0;
  let bothHold = (): void => undefined;
  const met = new Promise<void>((resolve) => {
    bothHold = resolve;
  });
  const crossing =
    (order: readonly [string, string]): Handle =>
    async (event, ctx, prepared) => {
      await lock(ctx, order[0]);
      if (++holding === 2) bothHold();
      await met;
      await lock(ctx, order[1]);
      await apply(event, ctx, prepared);
    };
  const limits = { batchSize: 1, maxAttempts: 1, maxContentions: 50 };
  const [first, second] = [new InProcessBroker(), new InProcessBroker()];
  first.send(...ids(20).map((id) => ({ id: `a-${id}` })));
  second.send(...ids(20).map((id) => ({ id: `b-${id}` })));
  await using one = await run(shop, first, { consumer: 'one', handle: crossing(['x', 'y']), ...limits });
  await using other = await run(shop, second, { consumer: 'other', handle: crossing(['y', 'x']), ...limits });
  await Promise.all([offsetIs(one, 20), offsetIs(other, 20)]);
  const failures = [...one.diary.of('inbox.failed'), ...other.diary.of('inbox.failed')];
  expect(failures[0]?.error).toMatchObject({ code: '40P01' });
  expect(await shop.effects()).toHaveLength(40);
  expect(await shop.letters()).toEqual([]);
});
