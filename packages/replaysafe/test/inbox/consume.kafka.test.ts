import { randomBytes } from 'node:crypto';
import { createTopics } from '@replaysafe/test-services';
import kafkajs from 'kafkajs';
import type pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { kafkajsPublisher, kafkajsSubscriber, type KafkajsPublisher } from '../../src/adapters/broker/kafkajs.js';
import { createConsumer, type Consumer, type ConsumerOptions } from '../../src/inbox/index.js';
import { createOutbox } from '../../src/outbox/index.js';
import type { BrokerRecord } from '../../src/ports/broker.js';
import { apply, Diary, openShop, type Shop } from './harness.js';

const PARTITIONS = 4;

let shop: Shop;
let topic: string;
let publisher: KafkajsPublisher;
let diary: Diary;
const running: Consumer[] = [];

const kafka = (clientId: string) =>
  new kafkajs.Kafka({ clientId, brokers: inject('kafkaBrokers').split(','), logLevel: kafkajs.logLevel.NOTHING });

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());
beforeEach(async () => {
  await shop.empty();
  topic = `inbox-${randomBytes(6).toString('hex')}`;
  await createTopics(inject('kafkaBrokers'), [{ topic, partitions: PARTITIONS }]);
  publisher = kafkajsPublisher({ kafka: kafka('producer') });
  diary = new Diary(topic);
});
afterEach(async () => {
  await Promise.all(running.splice(0).map((consumer) => consumer.stop()));
  await publisher.stop(AbortSignal.timeout(5_000));
  diary.close();
});

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);

async function publish(...events: readonly (Partial<BrokerRecord> & { readonly id?: string })[]): Promise<void> {
  const records = events.map(({ id, headers, ...rest }) => ({
    topic,
    key: id ?? 'none',
    value: Buffer.from('{}'),
    ...rest,
    headers: { 'content-type': 'application/json', ...(id === undefined ? {} : { 'event-id': id }), ...headers },
  }));
  const outcomes = await publisher.publish(records, AbortSignal.timeout(10_000));
  expect(outcomes.every((outcome) => outcome.status === 'stored')).toBe(true);
}

/** A member of the group; consumer and group are called like the topic. */
async function join(options: Partial<ConsumerOptions<pg.PoolClient>> = {}): Promise<Consumer> {
  const consumer = createConsumer<pg.PoolClient>({
    sql: shop.sql,
    subscriber: kafkajsSubscriber({ kafka, sessionTimeoutMs: inject('kafkaOwn') ? 1_500 : 6_000 }),
    consumer: topic,
    topics: [topic],
    handle: (event, ctx) => apply(event, ctx, ''),
    outbox: createOutbox({ sql: shop.sql }),
    retryBackoff: { baseMs: 5, capMs: 50 },
    batchSize: 20,
    ...options,
  });
  running.push(consumer);
  await consumer.start();
  return consumer;
}

/** Records of each partition that the group is done with, added up. */
async function settled(): Promise<number> {
  const admin = kafka('admin').admin();
  try {
    const [offsets] = await admin.fetchOffsets({ groupId: topic, topics: [topic] });
    return offsets!.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0);
  } finally {
    await admin.disconnect();
  }
}

const told = (): number => {
  const latest = new Map(diary.of('inbox.offset-committed').map((event) => [event.partition, event.nextOffset]));
  return [...latest.values()].reduce((sum, offset) => sum + Number(offset), 0);
};
const toldUpTo = (count: number): Promise<void> => diary.until(() => told() >= count);

test('P17: a new group begins with the first record; each event is applied once, whatever the batch held', async () => {
  await publish(...ids(100).map((id) => ({ id })));
  await publish(
    ...ids(30).map((id) => ({ id })),
    { key: 'x', value: Buffer.from('{}') },
    { id: 'broken', value: Buffer.from('{') },
  );
  await join({
    maxAttempts: 2,
    handle: async (event, ctx) => {
      await apply(event, ctx, '');
      if (event.id === 'e-0050') throw new Error('poison');
    },
  });
  await toldUpTo(132);
  expect(await settled()).toBe(132);
  expect((await shop.effects()).sort()).toEqual(ids(100).filter((id) => id !== 'e-0050'));
  expect((await shop.letters()).map((letter) => letter.headers['rs-error-code']).sort()).toEqual([
    'RS_INBOX_ATTEMPTS_EXHAUSTED',
    'RS_INBOX_EVENT_ID_MISSING',
    'RS_INBOX_PAYLOAD_INVALID',
  ]);
});

test('R-SHUT-KFK-1: a stop in the middle of a batch ends and commits it; nothing of it comes again', async () => {
  await publish(...ids(60).map((id) => ({ id })));
  let begun = (): void => undefined;
  const inside = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let goOn = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const first = await join({
    handle: async (event, ctx) => {
      begun();
      await gate;
      await apply(event, ctx, '');
    },
  });
  await inside;
  const stopped = first.stop();
  goOn();
  await stopped;
  const before = await shop.effects();
  expect(before.length).toBeGreaterThan(0);
  expect(await settled()).toBe(before.length);

  await join();
  await diary.until(() => diary.of('inbox.committed').flatMap((event) => event.eventIds).length >= 60);
  expect(diary.of('inbox.duplicate')).toEqual([]);
  expect((await shop.effects()).sort()).toEqual(ids(60));
});

test('members join and leave while events flow: none lost, none applied twice, offsets complete', async () => {
  const all = ids(600);
  const flow = (async () => {
    for (let n = 0; n < 600; n += 30) await publish(...all.slice(n, n + 30).map((id) => ({ id })));
  })();
  const first = await join();
  await diary.until(() => diary.of('inbox.committed').length > 2);
  const second = await join();
  await first.stop();
  await join();
  await second.stop();
  await flow;
  await diary.until(() => diary.of('inbox.committed').flatMap((event) => event.eventIds).length >= 600);
  await toldUpTo(600);
  expect((await shop.effects()).sort()).toEqual(all);
  expect(await settled()).toBe(600);
});
