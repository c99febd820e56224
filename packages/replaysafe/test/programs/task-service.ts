/** A service that runs tasks, each one call to the address it is given. The configuration is JSON in the first argument. */
import pg from 'pg';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createHttpClient } from '../../src/client/index.js';
import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';
import {
  createTaskWorker,
  sendRequest,
  taskKind,
  type RequestInput,
  type RequestResult,
} from '../../src/tasks/index.js';

export interface TaskServiceConfig {
  readonly databaseUrl: string;
  readonly provider: string;
}

const { databaseUrl, provider } = JSON.parse(process.argv[2] ?? '') as TaskServiceConfig;
const lifecycle = createLifecycle({ name: 'tasks', workMs: 400 });
installSignals(lifecycle);

const pool = new pg.Pool({ connectionString: databaseUrl });
pool.on('error', () => undefined);
lifecycle.pool({ name: 'pool', end: () => pool.end() });
const client = createHttpClient({
  name: 'provider',
  baseUrl: provider,
  retry: { tries: 1 },
  signals: lifecycle.signals,
});
lifecycle.producer(client);
const worker = lifecycle.relay(
  createTaskWorker({
    sql: fromPg(pool),
    kinds: { send: taskKind<RequestInput, RequestResult>() },
    handlers: { send: sendRequest(client) },
    leaseMs: 600,
    pollIdleMs: 50,
    backoff: { baseMs: 1, capMs: 20 },
    signals: lifecycle.signalsFor('work'),
    logger: lifecycle.logger,
  }),
);
worker.start();
lifecycle.started();
process.stdout.write('ready\n');
