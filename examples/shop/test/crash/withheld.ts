import kafkajs from 'kafkajs';
import { type FaultProxy, match, type ProxiedConnection } from '@replaysafe/test-services';
import type { IntendedOrder } from '../../src/demo/ordering-client.js';
import type { ServiceName } from '../../src/shop/instance.js';
import type { CrashShop, RelayMode } from './crash-shop.js';
import { OFFSET_COMMIT, onKafkaRequest } from './kafka-requests.js';
import { deadLetters, sendPoison } from './provocations.js';

/** A request that arrives and does its work, and whose reply the owner never sees. */
export interface Withheld {
  readonly what: string;
  /** The service that waits for the reply, and dies waiting. */
  readonly owner: ServiceName;
  readonly modes: readonly RelayMode[];
  /** The proxy that is between the two, told what to let through and what to hold. */
  readonly withhold: (shop: CrashShop, kafka: FaultProxy, order: IntendedOrder) => FaultProxy;
  /** How often the work is there that nobody has answered for: 1. */
  readonly done: (shop: CrashShop, order: IntendedOrder) => Promise<number>;
  /** What goes through beside an order. */
  readonly also?: (shop: CrashShop) => Promise<void>;
}

/** Holds the reply to the COMMIT of the transaction in which `statement` was sent. */
const commitOf =
  (service: ServiceName, statement: string) =>
  (shop: CrashShop): FaultProxy => {
    const database = shop.databases[service];
    const meant = new Set<ProxiedConnection>();
    database.onClientData = match(statement, (connection) => void meant.add(connection));
    database.onServerData = match('COMMIT\0', (connection) => (meant.has(connection) ? 'hold' : 'pass'));
    return database;
  };

/** Holds the reply to the COMMIT of a claim that has found rows: only rows of the outbox name the topic. */
const commitOfClaim = (shop: CrashShop): FaultProxy => {
  const database = shop.databases.orders;
  const meant = new Set<ProxiedConnection>();
  const topic = match(shop.shop.topic, (connection) => void meant.add(connection));
  const commit = match('COMMIT\0', (connection) => (meant.has(connection) ? 'hold' : 'pass'));
  database.onServerData = (chunk, connection) => {
    topic(chunk, connection);
    return commit(chunk, connection);
  };
  return database;
};

const ordersWritten = async (shop: CrashShop, { customerId }: IntendedOrder): Promise<number> =>
  (await shop.rows('orders', 'select id from customer_order where customer_id = $1', [customerId])).length;

const orderId = async (shop: CrashShop, { customerId }: IntendedOrder): Promise<unknown> =>
  (await shop.rows('orders', 'select id from customer_order where customer_id = $1', [customerId]))[0]?.['id'];

const events =
  (status: string): Withheld['done'] =>
  async (shop, order) => {
    const text = 'select id from replaysafe.outbox_event where aggregate_id = $1 and status = $2';
    return (await shop.rows('orders', text, [await orderId(shop, order), status])).length;
  };

const charges =
  (service: 'billing' | 'provider'): Withheld['done'] =>
  async (shop, order) =>
    (await shop.rows(service, 'select id from charge where order_id = $1', [await orderId(shop, order)])).length;

/** Records of the topic that hold a text. */
async function recordsWith(shop: CrashShop, text: string): Promise<number> {
  const kafka = new kafkajs.Kafka({ brokers: shop.brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  const consumer = kafka.consumer({ groupId: `${shop.shop.group}.look`, sessionTimeout: 6_000 });
  await Promise.all([admin.connect(), consumer.connect()]);
  try {
    const ends = await admin.fetchTopicOffsets(shop.shop.topic);
    const wanted = ends.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
    await consumer.subscribe({ topics: [shop.shop.topic], fromBeginning: true });
    let seen = 0;
    let found = 0;
    await new Promise<void>((resolve, reject) => {
      consumer
        .run({
          autoCommit: false,
          eachMessage: async ({ message }) => {
            seen += 1;
            if (message.value?.includes(text)) found += 1;
            if (seen === wanted) resolve();
          },
        })
        .catch(reject);
    });
    return found;
  } finally {
    await Promise.all([admin.disconnect(), consumer.disconnect()]);
  }
}

const BOTH: readonly RelayMode[] = ['single-phase', 'two-phase'];
const ONE: readonly RelayMode[] = ['single-phase'];

/** Every commit, publish and remote call on the way of an order. */
export const WITHHELD: readonly Withheld[] = [
  {
    what: 'the COMMIT of POST /orders',
    owner: 'orders',
    modes: ONE,
    withhold: commitOf('orders', 'shop:orders.insert'),
    done: ordersWritten,
  },
  {
    what: 'the COMMIT of a claim',
    owner: 'orders',
    modes: ['two-phase'],
    withhold: commitOfClaim,
    done: events('PUBLISHING'),
  },
  {
    what: 'a publish',
    owner: 'orders',
    modes: BOTH,
    withhold: (_shop, kafka, order) => {
      kafka.onClientData = match(order.customerId, (connection) => {
        connection.withholdReplies();
      });
      return kafka;
    },
    done: (shop, order) => recordsWith(shop, order.customerId),
  },
  {
    what: 'the COMMIT of a mark',
    owner: 'orders',
    modes: BOTH,
    withhold: commitOf('orders', 'replaysafe:outbox.mark-published'),
    done: events('PUBLISHED'),
  },
  {
    what: 'the call to the provider',
    owner: 'billing',
    modes: ONE,
    withhold: (shop) => {
      shop.provider.onClientData = match('POST /charges', (connection) => {
        connection.withholdReplies();
      });
      return shop.provider;
    },
    done: charges('provider'),
  },
  {
    what: "the provider's COMMIT",
    owner: 'provider',
    modes: ONE,
    withhold: commitOf('provider', 'shop:provider.charge'),
    done: charges('provider'),
  },
  {
    what: "the COMMIT of billing's charge",
    owner: 'billing',
    modes: ONE,
    withhold: commitOf('billing', 'shop:billing.record'),
    done: charges('billing'),
  },
  {
    what: 'the COMMIT of a dead letter',
    owner: 'billing',
    modes: ONE,
    withhold: commitOf('billing', 'replaysafe:inbox.park'),
    done: async (shop) => (await deadLetters(shop)).length,
    also: sendPoison,
  },
  {
    what: "the commit of billing's offset",
    owner: 'billing',
    modes: ONE,
    withhold: (_shop, kafka) => {
      kafka.onClientData = onKafkaRequest(OFFSET_COMMIT, (connection) => {
        connection.withholdReplies();
      });
      return kafka;
    },
    done: async (shop) => ((await shop.lag()) === 0 ? 1 : 0),
  },
];
