import { connect } from 'node:net';
import { randomUUID } from 'node:crypto';
import { startFaultProxy, type FaultProxy } from '@replaysafe/test-services';
import { Kafka, logLevel, type ISocketFactory } from 'kafkajs';
import { decodeMessage } from '../../../src/adapters/broker/kafkajs-record.js';
import { kafkajsPublisher, kafkajsSubscriber } from '../../../src/adapters/broker/kafkajs.js';
import type { ReceivedRecord } from '../../../src/ports/broker.js';
import { HARNESS_MAX_RECORD_BYTES, type BrokerHarness } from '../../../src/testing/index.js';

export interface KafkajsHarness extends BrokerHarness {
  stop(): Promise<void>;
}

/** Whatever address a broker tells its clients, they connect to its proxy. */
function socketsThrough(proxies: ReadonlyMap<string, FaultProxy>): ISocketFactory {
  return ({ host, port, onConnect }) => {
    const proxy = proxies.get(`${host}:${String(port)}`);
    if (!proxy) throw new Error(`no proxy before ${host}:${String(port)}`);
    return connect({ host: '127.0.0.1', port: proxy.port }, onConnect);
  };
}

/** The brokers looked at through a plain kafkajs, and our adapter on it, straight or through fault proxies. */
export async function startKafkajsHarness(brokerList: string, sessionTimeoutMs: number): Promise<KafkajsHarness> {
  const brokers = brokerList.split(',');
  const kafka = new Kafka({ clientId: 'harness', brokers, logLevel: logLevel.NOTHING });
  const admin = kafka.admin();
  const producer = kafka.producer({
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  await Promise.all([admin.connect(), producer.connect()]);

  const proxies = new Map<string, FaultProxy>();
  const members = (await admin.describeCluster()).brokers.map(({ host, port }) => `${host}:${String(port)}`);
  for (const address of new Set([...brokers, ...members])) {
    const [host = '', port = ''] = address.split(':');
    proxies.set(address, await startFaultProxy({ target: { host, port: Number(port) } }));
  }
  const socketFactory = socketsThrough(proxies);
  const eachProxy = (act: (proxy: FaultProxy) => void) => () => {
    for (const proxy of proxies.values()) act(proxy);
  };
  const straight = (clientId: string): Kafka => new Kafka({ clientId, brokers, logLevel: logLevel.NOTHING });
  // Few retries: a send fails for good while the test watches.
  const retry = { retries: 1, initialRetryTime: 50 };
  const disturbed = (clientId: string): Kafka =>
    new Kafka({ clientId, brokers, logLevel: logLevel.NOTHING, socketFactory, retry });

  return {
    sessionTimeoutMs,

    faults: {
      down: eachProxy((proxy) => {
        proxy.refuse();
      }),
      withholdReplies: eachProxy((proxy) => {
        proxy.withholdReplies();
      }),
      resume: eachProxy((proxy) => {
        proxy.resume();
      }),
    },

    createTopic: async ({ partitions = 1, maxMessageBytes } = {}) => {
      const topic = `conformance-${randomUUID()}`;
      const configEntries =
        maxMessageBytes === undefined ? [] : [{ name: 'max.message.bytes', value: String(maxMessageBytes) }];
      await admin.createTopics({ topics: [{ topic, numPartitions: partitions, configEntries }], waitForLeaders: true });
      return topic;
    },

    read: (topic) => readAll(kafka, topic),

    write: async (topic, partition, values) => {
      const messages = values.map((value) => ({ partition, value, key: value }));
      await producer.send({ topic, messages });
    },

    deleteBefore: async (topic, partition, offset) => {
      // kafkajs looks for the leader in metadata that it loads a line later.
      await admin.fetchTopicOffsets(topic);
      await admin.deleteTopicRecords({ topic, partitions: [{ partition, offset: String(offset) }] });
    },

    committed: async (group, topic, partition) => {
      const [found] = await admin.fetchOffsets({ groupId: group, topics: [topic] });
      const offset = BigInt(found?.partitions.find((one) => one.partition === partition)?.offset ?? -1);
      return offset === -1n ? undefined : offset;
    },

    memberCount: async (group) => {
      const { groups } = await admin.describeGroups([group]);
      return groups.flatMap(({ members: found }) => found).length;
    },

    openPublisher: () => kafkajsPublisher({ kafka: disturbed, maxRecordBytes: HARNESS_MAX_RECORD_BYTES }),

    openSubscriber: (options) =>
      kafkajsSubscriber({
        kafka: options?.disturbed === true ? disturbed : straight,
        sessionTimeoutMs,
        heartbeatMs: Math.floor(sessionTimeoutMs / 6),
        backoffBaseMs: 50,
        backoffCapMs: 500,
      }),

    stop: async () => {
      await Promise.all([...proxies.values()].map((proxy) => proxy.stop()));
      await Promise.all([admin.disconnect(), producer.disconnect()]);
    },
  };
}

/** Reads every partition from its first to its newest record. */
async function readAll(kafka: Kafka, topic: string): Promise<readonly ReceivedRecord[]> {
  const admin = kafka.admin();
  await admin.connect();
  const bounds = await admin.fetchTopicOffsets(topic);
  await admin.disconnect();
  const missing = new Map(
    bounds.filter(({ low, high }) => low !== high).map(({ partition, high }) => [partition, BigInt(high)]),
  );
  const records: ReceivedRecord[] = [];
  if (missing.size === 0) return records;
  const consumer = kafka.consumer({ groupId: `reader-${randomUUID()}`, maxWaitTimeInMs: 100 });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    const run = consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        records.push(...batch.messages.map((message) => decodeMessage(topic, batch.partition, message)));
        if (BigInt(batch.lastOffset()) + 1n >= (missing.get(batch.partition) ?? 0n)) missing.delete(batch.partition);
        if (missing.size === 0) resolve();
      },
    });
    run.catch(reject);
  });
  await consumer.disconnect();
  return records;
}
