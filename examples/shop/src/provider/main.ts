import { onEvent } from 'replaysafe';
import { createIdempotency } from 'replaysafe/idempotency';
import { createAbsorbedLog } from '../service/absorbed.js';
import { openDatabase, prepareDatabase } from '../service/database.js';
import { guardsOff } from '../service/guards.js';
import { createServiceServer, listen } from '../service/http.js';
import { createMetrics } from '../service/metrics.js';
import { createService } from '../service/service.js';
import { providerApp } from './app.js';
import { FaultBox } from './faults.js';
import { providerTables } from './sql.js';

const { env, logger, lifecycle } = createService('provider');
const unsafe = guardsOff(env.optional('SHOP_UNSAFE'));

const database = openDatabase(env.text('DATABASE_URL', 'postgresql://postgres@127.0.0.1:5432/provider'), logger);
lifecycle.pool({ name: 'provider-pool', end: () => database.pool.end() });

const { sql } = database;
const idempotency = createIdempotency({ sql, scope: 'single-tenant', signals: lifecycle.signalsFor('http'), logger });

const absorbed = createAbsorbedLog(database.pool, logger);
onEvent('idempotency.replayed', ({ keyHash }) => {
  absorbed.note([keyHash]);
});
lifecycle.producer(absorbed);

const server = createServiceServer(
  lifecycle,
  createMetrics(lifecycle),
  providerApp({
    sql,
    idempotency,
    ignoresKeys: unsafe.has('provider-without-keys'),
    faults: env.optional('SHOP_FAULTS') === '1' ? new FaultBox() : undefined,
  }),
);
await listen(server, env.whole('PORT', 3003), env.text('HOST', '127.0.0.1'));
await prepareDatabase(database, providerTables, { stopping: lifecycle.signals.stopping, logger });
lifecycle.started();
