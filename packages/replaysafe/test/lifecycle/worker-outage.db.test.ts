import { match, startFaultProxy, type FaultProxy } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { hasCode } from '../../src/errors.js';
import { type Lifecycle } from '../../src/lifecycle/index.js';
import { silentLogger } from '../../src/ports/logger.js';
import { waitForEvent } from '../../src/testing/index.js';
import { counter, gate, LeaseDatabase, startPod, type PodOptions } from './lease-database.js';

let db: LeaseDatabase;
let proxy: FaultProxy;
let pool: pg.Pool;
let pods: Lifecycle[];
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
beforeEach(async () => {
  pods = [];
  await db.clear();
  const target = new URL(db.database.url);
  proxy = await startFaultProxy({ target: { host: target.hostname, port: Number(target.port) } });
  pool = new pg.Pool({ connectionString: proxy.through(db.database.url), max: 4, connectionTimeoutMillis: 500 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  proxy.resume();
  await Promise.all(pods.map((pod) => pod.stop()));
  await proxy.stop();
  await pool.end();
});
afterAll(() => db.close());

/** A pod whose way to the database leads through the proxy. */
const startBehindProxy = (options: Omit<PodOptions, 'sql'>): void => {
  pods.push(startPod({ sql: fromPg(pool), logger: silentLogger, ...options }));
};

it('P10: a pod that is cut off from the database hears of it, another takes over, and its late transaction is refused', async () => {
  const [began, back] = [gate(), gate()];
  let refusal: unknown;
  startBehindProxy({
    leaseMs: 400,
    run: async ({ lease }) => {
      began.open();
      await back.opened;
      expect(lease.lost.aborted).toBe(true);
      await fromPg(pool)
        .transaction(async (tx) => {
          await tx.query('insert into effect (epoch) values (1)');
          await lease.check(tx);
        })
        .catch((error: unknown) => (refusal = error));
    },
  });
  await began.opened;
  const lost = waitForEvent('lifecycle.lease-lost');
  // Nothing arrives, nothing is closed: the connection hangs.
  proxy.drop();
  expect(await lost).toEqual({ worker: 'one-of-all', epoch: 1n });
  const taken = waitForEvent('lifecycle.lease-taken');
  const finish = gate();
  pods.push(
    startPod({
      sql: db.sql,
      logger: silentLogger,
      run: async ({ lease }) => {
        await finish.opened;
        await db.sql.transaction(async (tx) => {
          await lease.check(tx);
          await tx.query('insert into effect (epoch) values (2)');
        });
      },
    }),
  );
  expect(await taken).toMatchObject({ epoch: 2n, takenOver: true });
  proxy.cut();
  proxy.resume();
  const ran = waitForEvent('lifecycle.worker-ran');
  back.open();
  await ran;
  expect(hasCode(refusal, 'RS_LIFECYCLE_LEASE_LOST')).toBe(true);
  finish.open();
  await db.rowThat(({ owner }) => owner === null);
  expect(await db.effects()).toEqual(['2']);
});

it('P2: a claim whose COMMIT was not answered is found again by the same pod, without waiting for the lease', async () => {
  let lost = 0;
  proxy.onServerData = match('COMMIT\0', (connection) => {
    if (lost++ > 0) return undefined;
    connection.cut();
    return 'drop';
  });
  const taken = waitForEvent('lifecycle.lease-taken', () => true, { timeoutMs: 5_000 });
  startBehindProxy({ leaseMs: 60_000, run: async () => undefined });
  expect((await taken).epoch).toBe(2n);
  await db.rowThat(({ owner }) => owner === null);
});

it('P2: a run whose end was noted, but not answered, is not run again', async () => {
  const finish = gate();
  let lost = 0;
  const warnings: string[] = [];
  const ran = waitForEvent('lifecycle.worker-ran');
  startBehindProxy({
    logger: { ...silentLogger, warn: (_, message) => void warnings.push(message) },
    run: async () => {
      await finish.opened;
      proxy.onServerData = match('COMMIT\0', (connection) => {
        if (lost++ > 0) return undefined;
        connection.cut();
        return 'drop';
      });
    },
  });
  finish.open();
  await ran;
  expect(await db.rowThat(({ owner }) => owner === null)).toMatchObject({ epoch: '1' });
  const stopped = pods[0]!.stop();
  expect((await stopped).exitCode).toBe(0);
  expect(lost).toBeGreaterThan(0);
  expect(warnings).toEqual([]);
  expect(await db.row()).toMatchObject({ owner: null, epoch: '1' });
});

it('goes on when the database is back, however often it went away', async () => {
  const runs = counter();
  startBehindProxy({
    everyMs: 10,
    leaseMs: 300,
    run: async () => {
      runs.tick();
    },
  });
  for (let outage = 0; outage < 3; outage++) {
    await runs.more(1);
    proxy.refuse();
    await new Promise((resolve) => setImmediate(resolve));
    proxy.resume();
  }
  await runs.more(1);
  expect(runs.seen).toBeGreaterThanOrEqual(4);
});
