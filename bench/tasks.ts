import { createDatabase, startPostgres } from '@replaysafe/test-services';
import { Logger, run as runGraphile } from 'graphile-worker';
import pg from 'pg';
import PgBoss from 'pg-boss';
import { onEvent } from 'replaysafe';
import { fromPg } from 'replaysafe/adapters/sql/pg';
import { migrate } from 'replaysafe/migrate';
import { createTasks, createTaskWorker, taskKind } from 'replaysafe/tasks';
import { measure, perSecond, type Contender, type Measured } from './case.js';

const TASKS = 10_000;
const AT_ONCE = 100;
const RUNS = 3;

/** Drains a backlog of tasks whose handler does nothing: what is left is the queue's own work and the database's. */
export async function benchTasks(): Promise<Measured[]> {
  const server = await startPostgres();
  const { url } = await createDatabase(server.url);
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  try {
    return await measure('tasks.drain', 'tasks/s', RUNS, [
      await ours(pool),
      await graphileWorker(url, pool),
      await pgBoss(url),
    ]);
  } finally {
    await pool.end();
    await server.stop();
  }
}

async function ours(pool: pg.Pool): Promise<Contender> {
  const sql = fromPg(pool);
  await migrate(sql);
  const kinds = { noop: taskKind<{ n: number }>() };
  const tasks = createTasks({ sql, kinds });
  return {
    name: 'replaysafe',
    run: async () => {
      await pool.query('truncate replaysafe.task');
      await sql.transaction(async (tx) => {
        for (let n = 0; n < TASKS; n++) await tasks.enqueue(tx, { kind: 'noop', key: `k-${n}`, input: { n } });
      });
      await pool.query('analyze replaysafe.task');
      const worker = createTaskWorker({ sql, kinds, handlers: { noop: () => undefined }, concurrency: AT_ONCE });
      const figure = await perSecond(TASKS, async () => {
        const drained = succeeded(TASKS);
        worker.start();
        await drained;
      });
      await worker.stop();
      return figure;
    },
  };
}

function succeeded(count: number): Promise<void> {
  let left = count;
  return new Promise((resolve) => {
    const subscription = onEvent('task.succeeded', ({ ids }) => {
      left -= ids.length;
      if (left > 0) return;
      subscription.unsubscribe();
      resolve();
    });
  });
}

async function graphileWorker(url: string, pool: pg.Pool): Promise<Contender> {
  let done = (): void => undefined;
  const options = {
    connectionString: url,
    concurrency: AT_ONCE,
    maxPoolSize: 10,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    taskList: {
      noop: () => {
        done();
      },
    },
  };
  const first = await runGraphile(options);
  await first.stop();
  return {
    name: 'graphile-worker',
    run: async () => {
      await pool.query(
        `select graphile_worker.add_jobs(array(
          select row('noop', json_build_object('n', n), null, null, null, null, null, null)::graphile_worker.job_spec
          from generate_series(1, $1::int) n))`,
        [TASKS],
      );
      let runner: Awaited<ReturnType<typeof runGraphile>> | undefined;
      const figure = await perSecond(TASKS, async () => {
        const drained = counted(TASKS, (each) => (done = each));
        runner = await runGraphile(options);
        await drained;
      });
      await runner?.stop();
      return figure;
    },
  };
}

async function pgBoss(url: string): Promise<Contender> {
  const boss = new PgBoss({ connectionString: url, max: 10, supervise: false });
  await boss.start();
  await boss.createQueue('noop');
  return {
    name: 'pg-boss',
    run: async () => {
      const jobs = Array.from({ length: TASKS }, (_, n) => ({ name: 'noop', data: { n } }));
      await boss.insert(jobs);
      let done = (): void => undefined;
      let id = '';
      const figure = await perSecond(TASKS, async () => {
        const drained = counted(TASKS, (each) => (done = each));
        id = await boss.work('noop', { batchSize: 1_000, pollingIntervalSeconds: 0.5 }, (batch) => {
          batch.forEach(() => {
            done();
          });
          return Promise.resolve();
        });
        await drained;
      });
      await boss.offWork({ id });
      return figure;
    },
  };
}

function counted(count: number, give: (each: () => void) => void): Promise<void> {
  let left = count;
  return new Promise((resolve) => {
    give(() => {
      if (--left === 0) resolve();
    });
  });
}
