import { createIdempotency, createIdempotencySweep } from 'replaysafe/idempotency';
import { createOutbox, createRelay } from 'replaysafe/outbox';
import { createTasks, createTaskWorker } from 'replaysafe/tasks';
import { kafkajsPublisher } from 'replaysafe/adapters/broker/kafkajs';
import { openDatabase, prepareDatabase } from '../service/database.js';
import { guardsOff } from '../service/guards.js';
import { createServiceServer, listen } from '../service/http.js';
import { kafkaClients } from '../service/kafka.js';
import { createMetrics } from '../service/metrics.js';
import { createService } from '../service/service.js';
import { ordersApp } from './app.js';
import { createDirectPublisher } from './direct-publisher.js';
import { ordersTasks, runExport } from './exports.js';
import { orderConfirmed } from './order.js';
import { ordersTables } from './sql.js';

const { env, logger, lifecycle } = createService('orders');
const unsafe = guardsOff(env.optional('SHOP_UNSAFE'));
const topic = env.text('ORDERS_TOPIC', 'orders.confirmed');

const database = openDatabase(env.text('DATABASE_URL', 'postgresql://postgres@127.0.0.1:5432/orders'), logger);
lifecycle.pool({ name: 'orders-pool', end: () => database.pool.end() });

const publisher = kafkajsPublisher({ kafka: kafkaClients(env), name: 'orders', logger });
lifecycle.producer(publisher);

const { sql } = database;
const outbox = createOutbox({ sql });
const relay = createRelay({
  sql,
  publisher,
  mode: env.oneOf('RELAY_MODE', ['single-phase', 'two-phase'], 'single-phase'),
  leaseMs: env.whole('RELAY_LEASE_MS', 5_000),
  logger,
});
const idempotency = createIdempotency({ sql, scope: 'single-tenant', signals: lifecycle.signalsFor('http'), logger });

const tasks = createTasks({ sql, kinds: ordersTasks });
const exporter = createTaskWorker({
  sql,
  kinds: ordersTasks,
  handlers: { export: runExport(database.pool, env.whole('EXPORT_STEP_MS', 1_000)) },
  leaseMs: env.whole('TASK_LEASE_MS', 5_000),
  signals: lifecycle.signalsFor('work'),
  logger,
});

const direct = unsafe.has('no-outbox') ? createDirectPublisher(kafkaClients(env)('direct'), topic) : undefined;
if (direct !== undefined) lifecycle.producer(direct);

const app = await ordersApp({
  pool: database.pool,
  idempotency,
  tasks,
  announce: async (tx, order) => {
    if (direct === undefined) await outbox.enqueue(tx, orderConfirmed(order, topic));
  },
  committed: (order) => {
    if (direct !== undefined) return direct.publish(order);
    // A hint: an idle relay would find the row by itself, a little later.
    relay.wake();
  },
});
const server = createServiceServer(lifecycle, createMetrics(lifecycle, outbox), (request, response) => {
  app.routing(request, response);
});

// Alive before it is ready: whoever restarts dead processes sees that this one is waiting, not hanging.
await listen(server, env.whole('PORT', 3001), env.text('HOST', '127.0.0.1'));
await prepareDatabase(database, ordersTables, { stopping: lifecycle.signals.stopping, logger });
lifecycle.relay(relay);
relay.start();
lifecycle.relay(exporter);
exporter.start();
lifecycle.worker(tasks.cleaner(), { lease: { sql } });
// One instance of all sweeps at a time; which one, the row of the lease says.
lifecycle.worker(createIdempotencySweep({ sql, everyMs: env.whole('SWEEP_EVERY_MS', 60_000) }), { lease: { sql } });
lifecycle.started();
