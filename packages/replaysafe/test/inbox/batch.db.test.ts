import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { apply, offsetIs, openShop, run, type Shop } from './harness.js';
import { InProcessBroker } from './in-process-broker.js';

let shop: Shop;
let broker: InProcessBroker;
let xids: Set<string>;

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());
beforeEach(async () => {
  broker = new InProcessBroker();
  xids = new Set();
  await shop.empty();
});

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);

test('a batch is one transaction, its handlers run in offset order, its offset follows the commit', async () => {
  broker.send(
    ...ids(50)
      .map((id) => ({ id }))
      .reverse(),
  );
  await using running = await run(shop, broker, {
    handle: async (event, ctx, prepared) => {
      xids.add(ctx.sql.xid);
      await apply(event, ctx, prepared);
    },
  });
  await offsetIs(running, 50);
  expect(await shop.effects()).toEqual(ids(50).reverse());
  expect(xids.size).toBe(1);
  expect(running.diary.order).toEqual(['inbox.received', 'inbox.handled', 'inbox.committed', 'inbox.offset-committed']);
});

test('the event carries what was sent', async () => {
  broker.send({
    id: 'e-1',
    type: 'OrderConfirmed',
    key: 'o-1',
    payload: { amountMinor: 1990 },
    headers: { traceparent: '00-a-b-01', 'content-type': 'application/json; charset=utf-8' },
  });
  const seen: unknown[] = [];
  await using running = await run(shop, broker, {
    handle: async (event) => {
      seen.push(event);
    },
  });
  await offsetIs(running, 1);
  expect(seen).toEqual([
    expect.objectContaining({
      id: 'e-1',
      type: 'OrderConfirmed',
      key: 'o-1',
      payload: { amountMinor: 1990 },
      topic: 'orders',
      partition: 0,
      offset: 0n,
      timestamp: 1_700_000_000_000,
    }),
  ]);
  expect(seen[0]).toHaveProperty('headers.traceparent', '00-a-b-01');
});

test('an event that comes again, in a later batch or in its own, has one effect', async () => {
  const sent = ['a', 'b', 'a', 'c', 'b', 'b'].map((id) => ({ id }));
  broker.send(...sent);
  await using running = await run(shop, broker);
  await offsetIs(running, 6);
  broker.send(...sent, { id: 'd' });
  await offsetIs(running, 13);
  expect(await shop.effects()).toEqual(['a', 'b', 'c', 'd']);
  expect(running.diary.of('inbox.duplicate').flatMap((event) => event.eventIds)).toHaveLength(9);
  expect(running.diary.of('inbox.committed').map((event) => event.duplicates)).toEqual([3, 6]);
});

test('another consumer has its own memory', async () => {
  broker.send({ id: 'a' });
  await using billing = await run(shop, broker);
  await offsetIs(billing, 1);
  const again = new InProcessBroker();
  again.send({ id: 'a' });
  await using shipping = await run(shop, again, { consumer: 'shipping' });
  await offsetIs(shipping, 1);
  expect(await shop.effects()).toEqual(['a', 'a']);
});

test('a crash between the commit and the offset: the redelivery does nothing', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  {
    // The process is gone before the broker hears of it.
    await using dying = await run(shop, broker, { faults: { commit: () => 'fenced' } });
    await dying.diary.until(() => dying.diary.of('inbox.committed').length === 1);
  }
  expect(broker.committed.size).toBe(0);
  await using restarted = await run(shop, broker);
  await offsetIs(restarted, 10);
  expect(await shop.effects()).toEqual(ids(10));
  expect(restarted.diary.of('inbox.duplicate')[0]?.eventIds).toEqual(ids(10));
  expect(restarted.diary.of('inbox.handled')).toEqual([]);
});

test('an offset that the broker does not take at once is told again', async () => {
  broker.send(...ids(3).map((id) => ({ id })));
  let refusals = 2;
  await using running = await run(shop, broker, {
    faults: { commit: () => (refusals-- > 0 ? 'retriable' : undefined) },
  });
  await offsetIs(running, 3);
  expect(running.subscriber.deliveries).toHaveLength(1);
});

test('batches are as large as they may be, and each partition has its own', async () => {
  broker.send(...ids(25).map((id, n) => ({ id, partition: n % 2 })));
  await using running = await run(shop, broker, { batchSize: 10, faults: { partitions: [0, 1] } });
  await running.diary.until(() => broker.committed.get('orders/0') === 13n && broker.committed.get('orders/1') === 12n);
  expect(running.subscriber.deliveries.map((offsets) => offsets.length).sort()).toEqual([10, 10, 2, 3]);
  expect((await shop.effects()).sort()).toEqual(ids(25));
});
