import { randomBytes, randomUUID } from 'node:crypto';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { dropDatabases } from '../../src/shop/databases.js';
import { sessionFor } from '../../src/shop/infrastructure.js';
import { startShop, type Shop } from '../../src/shop/shop.js';

const suffix = `_test_${randomBytes(4).toString('hex')}`;
let shop: Shop;

beforeAll(async () => {
  shop = await startShop({
    databaseUrl: inject('databaseUrl'),
    kafkaBrokers: inject('kafkaBrokers'),
    ...sessionFor({ ownKafka: inject('kafkaOwn') }),
    suffix,
    env: {
      all: { LAME_DUCK_MS: '100' },
      orders: { SWEEP_EVERY_MS: '200', EXPORT_STEP_MS: '20' },
      provider: { SHOP_FAULTS: '1' },
    },
  });
});

afterAll(async () => {
  await shop.stop();
  await dropDatabases(inject('databaseUrl'), suffix);
});

const order = { customerId: 'c-1', amountMinor: 1990, currency: 'EUR' };

function post(body: unknown, key?: string) {
  return fetch(`${shop.orders[0]!.address}/orders`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: JSON.stringify(body),
  });
}

async function placeOrder(): Promise<string> {
  const answer = await post(order, randomUUID());
  expect(answer.status).toBe(201);
  return ((await answer.json()) as { orderId: string }).orderId;
}

async function setFaults(faults: object): Promise<void> {
  const answer = await fetch(`${shop.provider.address}/faults`, { method: 'PUT', body: JSON.stringify(faults) });
  expect(answer.status).toBe(200);
}

async function query<Row extends pg.QueryResultRow>(
  database: 'billing' | 'orders' | 'provider',
  text: string,
  values: unknown[],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: shop.databases[database] });
  await client.connect();
  try {
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end();
  }
}

async function charges(database: 'billing' | 'provider', orderId: string): Promise<number[]> {
  const text = 'select amount_minor from charge where order_id = $1';
  return (await query<{ amount_minor: number }>(database, text, [orderId])).map((row) => row.amount_minor);
}

async function count(database: 'billing' | 'provider', text: string, values: unknown[]): Promise<number> {
  return (await query<{ count: number }>(database, text, values))[0]!.count;
}

async function expectOneCharge(orderId: string): Promise<void> {
  await expect.poll(() => charges('billing', orderId), { timeout: 30_000 }).toEqual([1990]);
  expect(await charges('provider', orderId)).toEqual([1990]);
}

describe('orders', () => {
  test('accepts an order, and answers a repetition from its store', async () => {
    const key = randomUUID();
    const [first, second] = [await post(order, key), await post(order, key)];
    expect([first.status, second.status]).toEqual([201, 201]);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    expect(second.headers.get('idempotent-replayed')).toBe('true');
    const body = await first.text();
    expect(await second.text()).toBe(body);
    const placed = JSON.parse(body) as { orderId: string };
    expect(placed).toEqual({ ...order, orderId: expect.any(String) as string });

    const found = await fetch(`${shop.orders[0]!.address}/orders/${placed.orderId}`);
    expect(found.status).toBe(200);
    expect(await found.json()).toMatchObject({ ...order, orderId: placed.orderId });
  });

  test('refuses an order without a key, and another order under the same key', async () => {
    expect((await post(order)).status).toBe(400);
    const key = randomUUID();
    await post(order, key);
    expect((await post({ ...order, amountMinor: 1991 }, key)).status).toBe(422);
  });

  test.each([
    [{ ...order, amountMinor: 19.9 }],
    [{ ...order, amountMinor: 0 }],
    [{ ...order, currency: 'euro' }],
    [{ amountMinor: 1, currency: 'EUR' }],
    [[]],
  ])('refuses %j', async (body) => {
    const answer = await post(body, randomUUID());
    expect(answer.status).toBe(400);
    await answer.text();
  });

  test('forgets an answer whose day is over, by a worker under a lease, and does not place the order again', async () => {
    const key = randomUUID();
    await (await post(order, key)).text();
    const orders = 'select count(*)::int as count from customer_order';
    const [before] = await query('orders', orders, []);
    await query('orders', `update replaysafe.idempotency_record set expires_at = now() - interval '1 second'`, []);
    await expect
      .poll(() => query('orders', `select distinct state from replaysafe.idempotency_record`, []), { timeout: 10_000 })
      .toEqual([{ state: 'expired' }]);
    expect((await post(order, key)).status).toBe(409);
    expect(await query('orders', orders, [])).toEqual([before]);
    const [lease] = await query<{ epoch: string }>('orders', 'select epoch::text from replaysafe.worker_lease', []);
    expect(Number(lease!.epoch)).toBeGreaterThan(0);
  });

  test('R-SHUT-HTTP-3: an operation that takes longer than a request may is answered with 202, once, and can be asked for', async () => {
    const customerId = `c-${randomUUID()}`;
    const ask = () =>
      fetch(`${shop.orders[0]!.address}/exports`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': `export-${customerId}` },
        body: JSON.stringify({ customerId }),
      });
    const [first, again] = [await ask(), await ask()];
    expect([first.status, again.status]).toEqual([202, 202]);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    // On the other instance, too: it is a row, not something in memory.
    const operation = `${shop.orders.at(-1)!.address}${first.headers.get('location')!}`;
    await expect
      .poll(async () => (await fetch(operation)).json(), { timeout: 10_000 })
      .toMatchObject({ status: 'SUCCEEDED', result: { customerId, orders: 0, totalMinor: 0 } });
    expect((await fetch(`${shop.orders[0]!.address}/operations/nonsense`)).status).toBe(404);
  });

  test('knows no other orders', async () => {
    expect((await fetch(`${shop.orders[0]!.address}/orders/${randomUUID()}`)).status).toBe(404);
    expect((await fetch(`${shop.orders[0]!.address}/orders/nonsense`)).status).toBe(404);
  });
});

describe('a confirmed order', () => {
  test('is charged once', async () => {
    await expectOneCharge(await placeOrder());
  });

  test('is charged once although the provider loses its answers after the work', async () => {
    await setFaults({ dropAfterWork: 2 });
    await expectOneCharge(await placeOrder());
  });

  test('is charged once although the provider is slower than its caller waits', async () => {
    await setFaults({ slowMs: 4_000 });
    const orderId = await placeOrder();
    await expect.poll(() => charges('provider', orderId), { timeout: 30_000 }).toEqual([1990]);
    await setFaults({});
    await expectOneCharge(orderId);
  });

  test('is charged when the provider comes back from 503', async () => {
    await setFaults({ fail503: 5 });
    await expectOneCharge(await placeOrder());
  });

  test('waits for a billing that was killed', async () => {
    shop.billing[0]!.kill('SIGKILL');
    await expectOneCharge(await placeOrder());
  });
});

describe('a record that no order can be made of', () => {
  test.each([
    ['without an event id', '{}', {}],
    ['that is not JSON', 'no json', { 'event-id': randomUUID() }],
    ['without an amount', '{"orderId":"o-1"}', { 'event-id': randomUUID() }],
  ])('goes to the dead letters, %s, and billing goes on', async (what, value, headers) => {
    const key = `poison ${what}`;
    const producer = new kafkajs.Kafka({
      brokers: inject('kafkaBrokers').split(','),
      logLevel: kafkajs.logLevel.NOTHING,
    }).producer();
    await producer.connect();
    await producer.send({
      topic: shop.topic,
      messages: [{ key, value, headers: { 'content-type': 'application/json', ...headers } }],
    });
    await producer.disconnect();

    const deadLetters = `select count(*)::int as count from replaysafe.outbox_event
      where topic = $1 and aggregate_id = $2 and status = 'PUBLISHED'`;
    await expect.poll(() => count('billing', deadLetters, [`${shop.topic}.dead`, key]), { timeout: 30_000 }).toBe(1);
    await expectOneCharge(await placeOrder());
  });
});

describe('the shop', () => {
  test('starts a process again on its port when it dies', async () => {
    const [orders] = shop.orders;
    const { pid, address } = orders!;
    orders!.kill('SIGKILL');
    await orders!.gone(pid, 5_000);
    await orders!.ready();
    expect(orders!.pid).not.toBe(pid);
    expect(orders!.address).toBe(address);
    expect((await post(order, randomUUID())).status).toBe(201);
  });

  test('shows its metrics and its health', async () => {
    for (const { address } of shop.instances) {
      const metrics = await fetch(`${address}/metrics`);
      expect(metrics.status).toBe(200);
      expect(await metrics.text()).toContain('app_shutdown_duration_seconds');
      expect((await fetch(`${address}/health/live`)).status).toBe(200);
      expect((await fetch(`${address}/health/ready`)).status).toBe(200);
    }
  });

  test('refuses faults that the provider does not know', async () => {
    const put = (body: string) => fetch(`${shop.provider.address}/faults`, { method: 'PUT', body });
    expect((await put('{"slow":1}')).status).toBe(400);
    expect((await put('no json')).status).toBe(400);
  });
});
