import { randomUUID } from 'node:crypto';
import { match } from '@replaysafe/test-services';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { HEADERS } from 'replaysafe';
import { expect } from 'vitest';
import { createOutbox } from 'replaysafe/outbox';
import { fromPg } from 'replaysafe/adapters/sql/pg';
import type { ServiceName } from '../../src/shop/instance.js';
import type { CrashShop, RelayMode } from './crash-shop.js';
import type { Placing } from './customer.js';

/** What a provocation is told of the run. */
export interface Occasion {
  readonly shop: CrashShop;
  readonly mode: RelayMode;
  /** Sets where the owner dies. Called when all is prepared, right before the event can happen. */
  readonly arm: () => void;
}

/** Makes an event happen, by means that a shop meets in real life. Returns the orders that must come through it. */
export type Provocation = (occasion: Occasion) => Promise<readonly Placing[]>;

export const order: Provocation = async ({ shop, arm }) => {
  arm();
  return [shop.customer.place()];
};

/** SIGTERM to a service that has work under way; it dies in the stop. */
export const stopUnderWork =
  (service: ServiceName): Provocation =>
  async ({ shop, arm }) => {
    arm();
    const placings = [shop.customer.place(), shop.customer.place(), shop.customer.place()];
    shop.instance(service).kill('SIGTERM');
    return placings;
  };

/** Orders cannot reach Kafka. */
export const brokerDown: Provocation = async ({ shop, arm }) => {
  shop.bootstrap.refuse();
  await shop.restart('orders');
  arm();
  const placing = shop.customer.place();
  shop.afterDeath(() => {
    shop.bootstrap.resume();
  });
  return [placing];
};

/** An event that no broker takes, in the outbox beside those of orders. */
export const oversizeEvent: Provocation = async ({ shop, arm }) => {
  const pool = new pg.Pool({ connectionString: shop.shop.databases.orders, max: 1 });
  const client = await pool.connect();
  try {
    const outbox = createOutbox({ sql: fromPg(pool) });
    await client.query('begin');
    await outbox.enqueue(client, { topic: shop.shop.topic, type: 'Oversize', payload: Buffer.alloc(1_100_000) });
    arm();
    const placing = shop.customer.place();
    await client.query('commit');
    return [placing];
  } finally {
    client.release();
    await pool.end();
  }
};

/** The stop comes while the relay claims: the claim's answer is on its way, and nothing is published yet. */
export const stopDuringClaim: Provocation = async ({ shop, arm }) => {
  const database = shop.databases.orders;
  // Only rows of the outbox name the topic.
  database.onServerData = match(shop.shop.topic, () => 'hold');
  arm();
  const placing = shop.customer.place();
  await database.whenHeld();
  database.onServerData = undefined;
  shop.instance('orders').kill('SIGTERM');
  await shop.stopping('orders');
  database.resume();
  return [placing];
};

/** A relay dies between its claim and its publish; the next one, perhaps of the other mode, finds the claim. */
export const deadClaim: Provocation = async ({ shop, mode, arm }) => {
  shop.arm('orders', ['outbox.claimed']);
  let placing: Placing | undefined;
  const place = (): void => {
    placing = shop.customer.place();
  };
  if (mode === 'two-phase') {
    place();
    await shop.death('orders');
  } else {
    await shop.untilOrdersDiesIn('two-phase', place);
  }
  arm();
  // It may be dead again before it was ready.
  await shop
    .instance('orders')
    .start()
    .catch(() => undefined);
  return placing === undefined ? [] : [placing];
};

/** A record that is no event of orders: not even JSON. An order comes behind it. */
export const poison: Provocation = async ({ shop, arm }) => {
  arm();
  await sendPoison(shop);
  return [shop.customer.place()];
};

export async function sendPoison(shop: CrashShop): Promise<void> {
  const kafka = new kafkajs.Kafka({ brokers: shop.brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
  const producer = kafka.producer();
  await producer.connect();
  try {
    const headers = {
      [HEADERS.eventId]: randomUUID(),
      [HEADERS.eventType]: 'OrderConfirmed',
      [HEADERS.contentType]: 'application/json',
    };
    await producer.send({ topic: shop.shop.topic, messages: [{ key: 'poison', value: '{"orderId":', headers }] });
  } finally {
    await producer.disconnect();
  }
}

/** The poisoned record has one dead letter, which billing's relay has published or will. */
export async function oneDeadLetter(shop: CrashShop): Promise<void> {
  expect(await deadLetters(shop)).toHaveLength(1);
}

export function deadLetters(shop: CrashShop): Promise<Record<string, unknown>[]> {
  return shop.rows('billing', 'select id from replaysafe.outbox_event where topic = $1', [`${shop.shop.topic}.dead`]);
}
