import { randomBytes } from 'node:crypto';
import { createTopics, startProxyToKafka } from '@replaysafe/test-services';
import kafkajs from 'kafkajs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { kafkajsPublisher, type KafkajsPublisher } from '../../src/adapters/broker/kafkajs.js';
import { createRelay, type RelayOptions } from '../../src/outbox/index.js';
import { drain, nextEvent, TestOutbox } from './support.js';

const brokersOf = (brokers: string) => brokers.split(',');
const kafkaAt = (brokers: string) =>
  new kafkajs.Kafka({ brokers: brokersOf(brokers), logLevel: kafkajs.logLevel.NOTHING, retry: { retries: 1 } });

let db: TestOutbox;
let topic: string;
let publisher: KafkajsPublisher;
beforeAll(async () => {
  db = await TestOutbox.open();
});
afterAll(() => db.close());
beforeEach(async () => {
  await db.pool.query('truncate replaysafe.outbox_event');
  topic = `outbox-${randomBytes(6).toString('hex')}`;
  await createTopics(inject('kafkaBrokers'), [{ topic, partitions: 3 }]);
  publisher = kafkajsPublisher({ kafka: kafkaAt(inject('kafkaBrokers')) });
});
afterEach(() => publisher.stop(new AbortController().signal));

const eventId = (message: kafkajs.KafkaMessage) => String(message.headers!['event-id']);

/** What is in the topic, as another client reads it, until so many different events have come. */
async function readTopic(events: number): Promise<kafkajs.KafkaMessage[]> {
  const consumer = kafkaAt(inject('kafkaBrokers')).consumer({ groupId: `read-${topic}` });
  const messages: kafkajs.KafkaMessage[] = [];
  const seen = new Set<string>();
  try {
    await consumer.connect();
    await consumer.subscribe({ topic, fromBeginning: true });
    await new Promise<void>((resolve, reject) => {
      consumer
        .run({
          eachMessage: async ({ message }) => {
            messages.push(message);
            if (seen.add(eventId(message)).size === events) resolve();
          },
        })
        .catch(reject);
    });
  } finally {
    await consumer.disconnect();
  }
  return messages;
}

describe.each(['single-phase', 'two-phase'] as const)('%s', (mode) => {
  const create = (options: Partial<RelayOptions> = {}) => createRelay({ sql: db.sql, publisher, mode, ...options });

  test('two relays: each event once, bytes and headers as written, a time by the broker', async () => {
    const bytes = randomBytes(300);
    const ids = await db.write(
      ...Array.from({ length: 100 }, (_, n) => ({
        topic,
        key: `k-${n % 7}`,
        payload: bytes,
        headers: { n: String(n) },
      })),
    );
    // A backlog published with old timestamps is deleted by the topic's retention before anyone reads it.
    await db.pool.query(`update replaysafe.outbox_event set created_at = created_at - interval '30 days'`);
    const from = Date.now() - 60_000;
    await Promise.all([drain(create({ batchSize: 7 })), drain(create({ batchSize: 7 }))]);
    const messages = await readTopic(100);
    expect(messages.map(eventId).sort()).toEqual([...ids].sort());
    for (const { value, key, headers, timestamp } of messages) {
      const n = Number(String(headers!['n']));
      expect(value).toEqual(bytes);
      expect(String(key)).toBe(`k-${n % 7}`);
      expect(String(headers!['event-id'])).toBe(ids[n]);
      expect(String(headers!['content-type'])).toBe('application/octet-stream');
      expect(Number(timestamp)).toBeGreaterThan(from);
    }
    expect((await db.rows()).every(({ status }) => status === 'PUBLISHED')).toBe(true);
  });

  test('one message over the maximum and one for an unknown topic: dead with a reason, the others flow', async () => {
    const [big, lost, good] = await db.write(
      { topic, payload: randomBytes(1_100_000) },
      { topic: `${topic}-unknown` },
      { topic },
    );
    const relay = create({ topicGraceMs: 0, random: { next: () => 0 } });
    await drain(relay);
    const rows = new Map((await db.rows()).map((row) => [row.id, row]));
    expect(rows.get(good!)).toMatchObject({ status: 'PUBLISHED' });
    expect(rows.get(big!)).toMatchObject({ status: 'DEAD', failures: 1 });
    expect(rows.get(big!)!.last_error).toMatch(/^rejected: /);
    expect(rows.get(lost!)).toMatchObject({ status: 'DEAD' });
    expect(rows.get(lost!)!.last_error).toMatch(/^topic-refused: /);
  });

  test('a topic that is created late: the event waits for it', async () => {
    const late = `${topic}-late`;
    await db.write({ topic: late });
    const relay = create({ random: { next: () => 0 } });
    await relay.runOnce();
    expect(await db.rows()).toMatchObject([
      { status: 'PENDING', failures: 1, refused_since: expect.any(Date) as Date },
    ]);
    await createTopics(inject('kafkaBrokers'), [{ topic: late }]);
    await drain(relay);
    expect(await db.statuses()).toEqual(['PUBLISHED']);
  });

  test('broker down at the start and in the middle: the outbox keeps filling, nothing is lost, it recovers by itself', async () => {
    await using proxy = await startProxyToKafka(inject('kafkaProxied'));
    proxy.refuse();
    const behind = kafkajsPublisher({ kafka: kafkaAt(proxy.address), connectTimeoutMs: 1_000 });
    const relay = create({
      publisher: behind,
      publishTimeoutMs: 2_000,
      backoff: { baseMs: 5, capMs: 100 },
      pollIdleMs: 50,
    });
    const ids = await db.write(...Array.from({ length: 50 }, () => ({ topic })));
    const failed = nextEvent('outbox.failed');
    relay.start();
    await failed;
    const marked = nextEvent('outbox.marked');
    proxy.resume();
    await marked;

    proxy.refuse();
    ids.push(...(await db.write(...Array.from({ length: 50 }, () => ({ topic })))));
    await nextEvent('outbox.failed');
    proxy.resume();
    for (;;) {
      const { pending, publishing } = await db.outbox.status();
      if (pending + publishing === 0) break;
    }
    await relay.stop();
    await behind.stop(new AbortController().signal);
    expect((await db.rows()).every(({ status }) => status === 'PUBLISHED')).toBe(true);
    // Where the broker's answer was lost, an event may be there twice.
    expect(new Set((await readTopic(100)).map(eventId))).toEqual(new Set(ids));
  });
});
