import { randomUUID } from 'node:crypto';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import {
  createDatabase,
  createTopics,
  type FaultProxy,
  match,
  startFaultProxy,
  startProxyToKafka,
} from '../src/index.js';

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

it('withholds the reply to COMMIT: the row is there, and the client does not know', async () => {
  await using database = await createDatabase(inject('databaseUrl'));
  const { hostname, port } = new URL(database.url);
  await using proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
  const direct = new pg.Client({ connectionString: database.url });
  const proxied = new pg.Client({ connectionString: proxy.through(database.url) });
  proxied.on('error', () => undefined);
  await direct.connect();
  await proxied.connect();
  await direct.query('CREATE TABLE note (id int)');

  proxy.onServerData = match('COMMIT\0', () => 'hold');
  await proxied.query('BEGIN');
  await proxied.query('INSERT INTO note VALUES (1)');
  let answered = false;
  const commit = proxied.query('COMMIT').then(
    () => (answered = true),
    (error: unknown) => error,
  );
  const connection = await proxy.whenHeld();
  expect((await direct.query('SELECT id FROM note')).rows).toEqual([{ id: 1 }]);
  expect(answered).toBe(false);
  connection.cut();
  expect(await commit).toBeInstanceOf(Error);
  await direct.end();
});

const kafka = (brokers: string): kafkajs.Kafka =>
  new kafkajs.Kafka({ brokers: brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });

const endOf = async (topic: string): Promise<string | undefined> => {
  const admin = kafka(inject('kafkaBrokers')).admin();
  await admin.connect();
  try {
    return (await admin.fetchTopicOffsets(topic))[0]?.high;
  } finally {
    await admin.disconnect();
  }
};

let proxy: FaultProxy;
const topic = `services-${randomUUID()}`;
beforeAll(async () => {
  await createTopics(inject('kafkaBrokers'), [{ topic }]);
  proxy = await startProxyToKafka(inject('kafkaProxied'));
  closing.push(() => proxy.stop());
});

it('keeps clients of Kafka on the proxy after they asked the broker for its address', async () => {
  const admin = kafka(proxy.address).admin();
  await admin.connect();
  closing.push(() => admin.disconnect());
  const { brokers } = await admin.describeCluster();
  expect(brokers.map(({ host, port }) => `${host}:${port}`)).toEqual([proxy.address]);
});

it('withholds the reply to a publish: the record is in the topic, and the producer does not know', async () => {
  const producer = kafka(proxy.address).producer({ retry: { retries: 0 } });
  await producer.connect();
  closing.push(() => producer.disconnect());
  const id = randomUUID();
  proxy.onClientData = match(id, (connection) => {
    connection.withholdReplies();
  });
  let answered = false;
  const sent = producer.send({ topic, acks: -1, messages: [{ value: id }] }).then(() => (answered = true));
  const connection = await proxy.whenHeld();
  expect(await endOf(topic)).toBe('1');
  expect(answered).toBe(false);
  connection.release();
  await sent;
  expect(await endOf(topic)).toBe('1');
});
