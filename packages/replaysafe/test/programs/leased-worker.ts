/**
 * A pod with one worker of which one runs over all pods, to be frozen or killed. Reads DATABASE_URL, LEASE_MS and EVERY_MS, or
 * CRON_EVERY_MS; writes one JSON line when a run begins, ends or is refused. A run ends when it reads a line.
 */
import { createInterface } from 'node:readline';
import pg from 'pg';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { hasCode } from '../../src/errors.js';
import { createLifecycle, installSignals, type LeasedRunContext } from '../../src/lifecycle/index.js';

const say = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};
const env = process.env;
const lines = createInterface({ input: process.stdin });
const answers = lines[Symbol.asyncIterator]();
const pool = new pg.Pool({ connectionString: env['DATABASE_URL'] });
const sql = fromPg(pool);
const lifecycle = createLifecycle({ lameDuckMs: 0, workMs: 5_000 });
installSignals(lifecycle);
lifecycle.pool(Object.assign(pool, { name: 'pool' }));

const run = async ({ lease }: LeasedRunContext<pg.PoolClient>): Promise<void> => {
  const epoch = String(lease.epoch);
  say({ began: epoch });
  await answers.next();
  try {
    await sql.transaction(async ({ handle: tx }) => {
      await lease.check(tx);
      await tx.query('insert into effect (epoch) values ($1)', [epoch]);
    });
    say({ committed: epoch });
  } catch (error) {
    say({ refused: epoch, lost: lease.lost.aborted, code: hasCode(error, 'RS_LIFECYCLE_LEASE_LOST') });
    throw error;
  }
};
const cronEveryMs = Number(env['CRON_EVERY_MS'] ?? 0);
const options = { lease: { sql, leaseMs: Number(env['LEASE_MS']) } };
if (cronEveryMs > 0) {
  const cron = (from: Date): Date => new Date((Math.floor(from.getTime() / cronEveryMs) + 1) * cronEveryMs);
  lifecycle.worker({ name: 'one-of-all', cron, run }, options);
} else {
  lifecycle.worker({ name: 'one-of-all', everyMs: Number(env['EVERY_MS']), run }, options);
}
lifecycle.started();
say({ up: true });
lines.once('close', () => {
  void lifecycle.stop();
});
