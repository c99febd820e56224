import { run } from 'graphile-worker';
import PgBoss from 'pg-boss';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLifecycle, type Lifecycle } from '../../src/lifecycle/index.js';
import { gate, LeaseDatabase } from './lease-database.js';

let db: LeaseDatabase;
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
afterAll(() => db.close());

interface Queue {
  /** Registers the queue, with `work` as its job, and sends two jobs. */
  start(lifecycle: Lifecycle, work: (n: number) => Promise<void>): Promise<void>;
  /** Jobs that are still waiting to be done. */
  waiting(): Promise<number>;
}

const count = async (text: string): Promise<number> => (await db.pool.query<{ count: number }>(text)).rows[0]!.count;

const pgBoss: Queue = {
  start: async (lifecycle, work) => {
    const boss = new PgBoss(db.database.url);
    boss.on('error', (err) => {
      lifecycle.logger.error({ err }, 'pg-boss');
    });
    await boss.start();
    await boss.createQueue('jobs');
    for (const n of [1, 2]) await boss.send('jobs', { n });
    await boss.work<{ n: number }>('jobs', { batchSize: 1, pollingIntervalSeconds: 0.5 }, async ([job]) => {
      await work(job!.data.n);
    });
    lifecycle.relay({ name: 'jobs', stop: () => boss.stop({ graceful: true, wait: true, timeout: 15_000 }) });
  },
  waiting: () => count(`select count(*)::int from pgboss.job where name = 'jobs' and state <> 'completed'`),
};

const graphileWorker: Queue = {
  start: async (lifecycle, work) => {
    const taskList = { jobs: (payload: unknown) => work((payload as { n: number }).n) };
    const runner = await run({
      pgPool: db.pool,
      taskList,
      concurrency: 1,
      noHandleSignals: true,
      gracefulShutdownAbortTimeout: 15_000,
    });
    lifecycle.relay({ name: 'jobs', stop: () => runner.stop() });
    for (const n of [1, 2]) await runner.addJob('jobs', { n });
  },
  waiting: () => count('select count(*)::int from graphile_worker.jobs'),
};

describe.each([
  ['pg-boss', pgBoss],
  ['graphile-worker', graphileWorker],
])('the recipe for %s', (_, queue) => {
  it('finishes the job under way at a stop, takes no other, and has ended before the pool closes', async () => {
    const signalListeners = process.listenerCount('SIGTERM');
    const [began, finish] = [gate(), gate()];
    const order: string[] = [];
    const lifecycle = createLifecycle({ lameDuckMs: 0 });
    lifecycle.pool({ name: 'pool', end: async () => void order.push('pool closed') });
    await queue.start(lifecycle, async (n) => {
      began.open();
      await finish.opened;
      await db.pool.query('insert into effect (epoch) values ($1)', [n]);
      order.push('job done');
    });
    lifecycle.started();
    await began.opened;
    expect(process.listenerCount('SIGTERM')).toBe(signalListeners);
    const stopped = lifecycle.stop();
    finish.open();
    expect((await stopped).exitCode).toBe(0);
    expect(order).toEqual(['job done', 'pool closed']);
    expect(await queue.waiting()).toBe(1);
  });
});
