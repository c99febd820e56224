/**
 * A service with everything in it, on real PostgreSQL and Kafka, of which any part can be made to hang for ever. The
 * configuration is JSON in the first argument; each line of output is one JSON object.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { kafkajsPublisher, kafkajsSubscriber } from '../../src/adapters/broker/kafkajs.js';
import { withIdempotency } from '../../src/adapters/http/node.js';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createIdempotency } from '../../src/idempotency/index.js';
import { createConsumer } from '../../src/inbox/index.js';
import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';
import { createOutbox, createRelay } from '../../src/outbox/index.js';
import { type Publisher } from '../../src/ports/broker.js';

export type Part = 'handler' | 'worker' | 'consumer' | 'relay' | 'producer' | 'pool' | 'hook';

export interface HandoverConfig {
  readonly databaseUrl: string;
  readonly brokers: string;
  readonly sessionMs: number;
  readonly topic: string;
  readonly hangs: readonly Part[];
  readonly leaseMs: number;
  readonly reportFile: string;
}

const config = JSON.parse(process.argv[2] ?? '') as HandoverConfig;
const say = (mark: string, fields: object = {}): void =>
  void process.stdout.write(`${JSON.stringify({ mark, ...fields })}\n`);
const hangs = (part: Part): boolean => config.hangs.includes(part);
const never = (): Promise<never> => new Promise(() => undefined);

const lifecycle = createLifecycle({
  name: 'handover',
  graceMs: 6_000,
  lameDuckMs: 50,
  httpDrainMs: 1_500,
  workMs: 1_500,
  consumersMs: 1_500,
  producersMs: 1_000,
  poolReserveMs: 1_000,
  exitMarginMs: 1_000,
  quietMs: 50,
});
installSignals(lifecycle, { reportFile: config.reportFile });
const { logger } = lifecycle;

const pool = new pg.Pool({ connectionString: config.databaseUrl, max: 10 });
pool.on('error', () => undefined);
lifecycle.pool({ name: 'pool', end: () => (hangs('pool') ? never() : pool.end()) });
const sql = fromPg(pool);
const outbox = createOutbox({ sql });

const kafka = (clientId: string) =>
  new kafkajs.Kafka({ clientId, brokers: config.brokers.split(','), logLevel: kafkajs.logLevel.NOTHING });
const publisher = kafkajsPublisher({ kafka, name: 'handover', logger });
lifecycle.producer({
  name: 'producer',
  stop: (deadline) => (hangs('producer') ? never() : publisher.stop(deadline)),
});
const stuck: Publisher = {
  publish: () => {
    say('publishing');
    return never();
  },
  stop: () => Promise.resolve(),
};
const relay = lifecycle.relay(
  createRelay({
    sql,
    publisher: hangs('relay') ? stuck : publisher,
    mode: 'two-phase',
    name: 'relay',
    leaseMs: config.leaseMs,
    logger,
  }),
);

const consumer = lifecycle.consumer(
  createConsumer({
    sql,
    subscriber: kafkajsSubscriber({
      kafka,
      consumer: config.topic,
      sessionTimeoutMs: config.sessionMs,
      heartbeatMs: Math.round(config.sessionMs / 5),
      logger,
    }),
    consumer: config.topic,
    topics: [config.topic],
    outbox: createOutbox({ sql, duplicateId: 'ignore' }),
    handle: async (event, { tx }) => {
      await tx.query('insert into effect (source, name) values ($1, $2)', ['consumer', event.id]);
      if (!hangs('consumer')) return;
      say('handling');
      await never();
    },
    logger,
  }),
);

const idempotency = createIdempotency({ sql, scope: 'single-tenant', signals: lifecycle.signalsFor('http'), logger });
const placing = withIdempotency(idempotency, async (request, { tx }) => {
  await tx.query('insert into effect (source, name) values ($1, $2)', ['handler', request.headers['idempotency-key']]);
  await outbox.enqueue(tx, { topic: config.topic, type: 'Placed', key: 'k', payload: {} });
  if (hangs('handler')) {
    say('answering');
    await never();
  }
  return { status: 201, headers: {}, body: '{}' };
});
const server = lifecycle.server(
  createServer((request, response) => {
    if (!lifecycle.health(request, response)) void placing(request, response);
  }),
);

lifecycle.worker(
  {
    name: 'worker',
    everyMs: 60_000,
    run: async () => {
      say('working');
      if (hangs('worker')) await never();
    },
  },
  { firstRun: 'now' },
);
if (hangs('hook')) lifecycle.pool({ name: 'hook', stop: never });

server.listen(0, '127.0.0.1');
await once(server, 'listening');
await consumer.start();
relay.start();
lifecycle.started();
say('up', { port: (server.address() as AddressInfo).port });
