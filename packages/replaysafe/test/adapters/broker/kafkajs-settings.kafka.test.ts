import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { createTopics } from '@replaysafe/test-services';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { kafkajsSubscriber, type KafkajsSubscriber } from '../../../src/adapters/broker/kafkajs.js';
import type { ReceivedRecord, SubscribeOptions } from '../../../src/ports/broker.js';

const topic = `settings-${randomUUID()}`;
const kafka = (clientId: string): Kafka =>
  new Kafka({ clientId, brokers: inject('kafkaBrokers').split(','), logLevel: logLevel.NOTHING });
const subscription = (group: string, onBatch: SubscribeOptions['onBatch'] = async () => undefined) => ({
  group,
  topics: [topic],
  maxBatch: 10,
  onBatch,
});

beforeAll(() => createTopics(inject('kafkaBrokers'), [{ topic }]));

describe('kafkajsSubscriber refuses', () => {
  const refused = (subscriber: KafkajsSubscriber, group: string) =>
    expect(subscriber.start(subscription(group))).rejects.toMatchObject({ code: 'RS_BROKER_UNSAFE_SETTING' });

  it('a second member of a group on the same Kafka instance, as long as the first one runs', async () => {
    const shared = kafka('shared');
    const group = `shared-${randomUUID()}`;
    await using first = kafkajsSubscriber({ kafka: shared });
    await first.start(subscription(group));
    await refused(kafkajsSubscriber({ kafka: shared }), group);
    await first.stop(AbortSignal.timeout(10_000));
    await using next = kafkajsSubscriber({ kafka: shared });
    await next.start(subscription(group));
  });

  it('a group that another consumer uses, and takes a replica of the same one', async () => {
    const group = `group-${randomUUID()}`;
    await using billing = kafkajsSubscriber({ kafka, consumer: 'billing' });
    await billing.start(subscription(group));
    await refused(kafkajsSubscriber({ kafka, consumer: 'shipping' }), group);
    await using replica = kafkajsSubscriber({ kafka, consumer: 'billing' });
    await replica.start(subscription(group));
  });
});

describe('kafkajsSubscriber', () => {
  it('keeps the last value of a repeated header', async () => {
    const producer = kafka('test').producer({ createPartitioner: () => () => 0 });
    await producer.connect();
    await producer.send({ topic, messages: [{ value: 'v', headers: { twice: ['first', 'last'], once: 'only' } }] });
    await producer.disconnect();
    await using subscriber = kafkajsSubscriber({ kafka });
    const record = await new Promise<ReceivedRecord | undefined>((resolve, reject) => {
      const onBatch: SubscribeOptions['onBatch'] = async ({ records }) => {
        resolve(records.at(-1));
      };
      subscriber.start(subscription(`headers-${randomUUID()}`, onBatch)).catch(reject);
    });
    const headers = Object.entries(record?.headers ?? {}).map(([name, value]) => [name, Buffer.from(value).toString()]);
    expect(Object.fromEntries(headers)).toEqual({ twice: 'last', once: 'only' });
  });
});
