import { randomUUID } from 'node:crypto';
import kafkajs from 'kafkajs';
import { expect, inject, it } from 'vitest';
import { createTopics } from '../src/index.js';

it('creates topics with the partitions asked for, and leaves existing ones alone', async () => {
  const brokers = inject('kafkaBrokers');
  const topic = `services-${randomUUID()}`;
  await createTopics(brokers, [{ topic, partitions: 3 }]);
  await createTopics(brokers, [{ topic, partitions: 1 }]);
  const admin = new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
    expect(topics[0]?.partitions).toHaveLength(3);
  } finally {
    await admin.disconnect();
  }
});
