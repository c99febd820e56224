import { randomUUID } from 'node:crypto';
import { createDatabase, createTopics, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createCustomer, killAll, startService, type Service } from './nest-orders.js';

let database: TestDatabase;
let observer: pg.Pool;
let env: Record<string, string>;

beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  observer = new pg.Pool({ connectionString: database.url, max: 2 });
  const topic = `nest-orders.${randomUUID()}`;
  await createTopics(inject('kafkaBrokers'), [{ topic, partitions: 2 }]);
  env = {
    DATABASE_URL: database.url,
    KAFKA_BROKERS: inject('kafkaBrokers'),
    ORDERS_TOPIC: topic,
    KAFKA_SESSION_MS: inject('kafkaOwn') ? '500' : '6000',
  };
});

afterAll(async () => {
  killAll();
  await observer.end();
  await database.drop();
});

const count = async (text: string): Promise<number> =>
  Number((await observer.query<{ count: string }>(`select count(*) from ${text}`)).rows[0]!.count);

/** Four customers order one thing after the other until they are told to leave, or their service is gone. */
async function orderUntilGone(service: Service, onAccepted: (accepted: number) => void): Promise<Outcome> {
  const accepted: string[] = [];
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: 4 }, async (_, customerNumber) => {
      const customer = createCustomer();
      try {
        for (let told = false, n = 0; !told; n++) {
          const answer = await customer.order(service.url, `sku-${customerNumber}-${n}`);
          if (answer.status !== 201) throw new Error(`${answer.status} ${answer.body}`);
          accepted.push((JSON.parse(answer.body) as { id: string }).id);
          told = answer.close;
          onAccepted(accepted.length);
        }
      } catch (error) {
        failures.push(error);
      } finally {
        customer.leave();
      }
    }),
  );
  return { accepted, failures };
}

interface Outcome {
  readonly accepted: readonly string[];
  readonly failures: readonly unknown[];
}

test('a CommonJS Nest service loses no request on SIGTERM and no order on SIGKILL; each order is shipped once', async () => {
  const first = await startService(env);
  const drained = await orderUntilGone(first, (accepted) => {
    if (accepted === 60) first.kill('SIGTERM');
  });
  // Each customer got an answer to each request, the last of them with the word to leave.
  expect(drained.failures).toEqual([]);
  expect(drained.accepted.length).toBeGreaterThanOrEqual(60);
  expect(await first.exited).toEqual([0, null]);

  const second = await startService(env);
  const killed = await orderUntilGone(second, (accepted) => {
    if (accepted === 60) second.kill('SIGKILL');
  });
  expect(await second.exited).toEqual([null, 'SIGKILL']);
  expect(killed.failures).toHaveLength(4);

  const third = await startService(env);
  await expect
    .poll(() => count('customer_order o where not exists (select from shipment s where s."orderId" = o.id)'), {
      timeout: 30_000,
    })
    .toBe(0);
  third.kill('SIGTERM');
  expect(await third.exited).toEqual([0, null]);

  const { rows } = await observer.query<{ id: string }>('select id from customer_order');
  const stored = new Set(rows.map(({ id }) => id));
  for (const id of [...drained.accepted, ...killed.accepted]) expect(stored).toContain(id);
  // One shipment for each order, those included whose customers never got an answer.
  expect(await count('(select "orderId" from shipment group by 1 having count(*) <> 1) t')).toBe(0);
  expect(await count('shipment')).toBe(stored.size);
  expect(await count("replaysafe.outbox_event where status <> 'PUBLISHED'")).toBe(0);
});
