import { onEvent } from 'replaysafe';
import { createHttpClient } from 'replaysafe/client';
import { createConsumer } from 'replaysafe/inbox';
import { createOutbox, createRelay } from 'replaysafe/outbox';
import { createTasks, createTaskWorker, sendRequest } from 'replaysafe/tasks';
import { kafkajsPublisher, kafkajsSubscriber } from 'replaysafe/adapters/broker/kafkajs';
import { createAbsorbedLog } from '../service/absorbed.js';
import { openDatabase, prepareDatabase } from '../service/database.js';
import { guardsOff } from '../service/guards.js';
import { createServiceServer, listen, notFound } from '../service/http.js';
import { kafkaClients } from '../service/kafka.js';
import { createMetrics } from '../service/metrics.js';
import { createService } from '../service/service.js';
import { untilDone } from '../service/until-done.js';
import { chargeAtProvider, parseConfirmedOrder, recordCharge } from './charging.js';
import { offsetFirst } from './offset-first.js';
import { billingTasks, receiptOf } from './receipts.js';
import { billingTables } from './sql.js';
import { createUnguardedConsumer } from './unguarded-consumer.js';

const { env, logger, lifecycle } = createService('billing');
const unsafe = guardsOff(env.optional('SHOP_UNSAFE'));
const topic = env.text('ORDERS_TOPIC', 'orders.confirmed');
const group = env.text('KAFKA_GROUP', 'billing');
const session = {
  sessionTimeoutMs: env.whole('KAFKA_SESSION_MS', 6_000),
  heartbeatMs: env.whole('KAFKA_HEARTBEAT_MS', 1_000),
};

const database = openDatabase(env.text('DATABASE_URL', 'postgresql://postgres@127.0.0.1:5432/billing'), logger);
lifecycle.pool({ name: 'billing-pool', end: () => database.pool.end() });
const { sql } = database;

const provider = createHttpClient({
  name: 'provider',
  baseUrl: env.text('PROVIDER_URL', 'http://127.0.0.1:3003'),
  money: true,
  timeouts: { connectMs: 500, headersMs: 1_000, bodyMs: 2_000, totalMs: 8_000 },
  // This provider is killed by the demo and back within a second; leave the 30 s to one that is ill.
  breaker: { openMs: 1_000 },
  signals: lifecycle.signals,
  logger,
});
lifecycle.producer(provider);

// Dead letters go the way of every event: into the outbox, in the transaction that parks what they are about.
const outbox = createOutbox({ sql });
const publisher = kafkajsPublisher({ kafka: kafkaClients(env), name: 'billing', logger });
const relay = createRelay({ sql, publisher, logger });
lifecycle.producer(publisher);

const tasks = createTasks({ sql, kinds: billingTasks });
const receipts = createTaskWorker({
  sql,
  kinds: billingTasks,
  handlers: { 'send-receipt': sendRequest(provider) },
  leaseMs: env.whole('TASK_LEASE_MS', 5_000),
  backoff: { baseMs: 100, capMs: 2_000 },
  signals: lifecycle.signalsFor('work'),
  logger,
});

const absorbed = createAbsorbedLog(database.pool, logger);
onEvent('inbox.duplicate', ({ eventIds }) => {
  absorbed.note(eventIds);
});
lifecycle.producer(absorbed);

const subscriber = kafkajsSubscriber({ kafka: kafkaClients(env), consumer: 'billing', ...session, logger });
const consumer = unsafe.has('no-dedup-row')
  ? createUnguardedConsumer({ kafka: kafkaClients(env), topic, group, session, provider, pool: database.pool })
  : createConsumer({
      sql,
      subscriber: unsafe.has('offset-first') ? offsetFirst(subscriber) : subscriber,
      consumer: 'billing',
      topics: [topic],
      group,
      // The provider is asked before a transaction is open, so that no lock is held while it thinks.
      prepare: (event, ctx) =>
        chargeAtProvider(provider, parseConfirmedOrder(event.payload), ctx.keyFor('charge'), ctx.signal),
      handle: async (event, ctx, providerChargeId) => {
        const order = parseConfirmedOrder(event.payload);
        await recordCharge(ctx.tx, order, providerChargeId);
        await tasks.enqueue(ctx.tx, receiptOf(order));
      },
      outbox,
      retryBackoff: { baseMs: 100, capMs: 2_000 },
      logger,
    });

const server = createServiceServer(lifecycle, createMetrics(lifecycle, outbox), notFound);
await listen(server, env.whole('PORT', 3002), env.text('HOST', '127.0.0.1'));
const starting = { stopping: lifecycle.signals.stopping, logger };
await prepareDatabase(database, billingTables, starting);
lifecycle.relay(relay);
relay.start();
lifecycle.relay(receipts);
receipts.start();
lifecycle.worker(tasks.cleaner(), { lease: { sql } });
lifecycle.consumer(consumer);
await untilDone('join the consumer group', starting, async () => {
  await consumer.start();
  return undefined;
});
lifecycle.started();
