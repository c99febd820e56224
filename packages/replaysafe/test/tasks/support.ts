import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { inject } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent, type EventName, type EventPayloads } from '../../src/events.js';
import { migrate } from '../../src/migrate/index.js';
import type { SqlPort } from '../../src/ports/sql.js';
import {
  createTasks,
  createTaskWorker,
  taskKind,
  type NewTask,
  type TaskHandlers,
  type TaskWorker,
  type TaskWorkerOptions,
  type Tasks,
} from '../../src/tasks/index.js';

export const kinds = {
  receipt: taskKind<{ n: number }, { sent: number }>({ maxFailures: 3 }),
  other: taskKind<unknown>(),
  quick: taskKind<unknown>({ timeoutMs: 50 }),
  remembered: taskKind<unknown>({ keyWindowMs: 86_400_000 }),
};
export type Kinds = typeof kinds;

/** A database of one's own with the table of tasks, and workers that end with it. */
export class TestTasks {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  readonly sql: SqlPort<pg.PoolClient>;
  readonly tasks: Tasks<pg.PoolClient, Kinds>;
  readonly #workers: TaskWorker[] = [];

  private constructor(database: TestDatabase, pool: pg.Pool) {
    this.database = database;
    this.pool = pool;
    this.sql = fromPg(pool);
    this.tasks = createTasks({ sql: this.sql, kinds });
  }

  static async open(): Promise<TestTasks> {
    const database = await createDatabase(inject('databaseUrl'));
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    pool.on('error', () => undefined);
    const opened = new TestTasks(database, pool);
    await migrate(opened.sql);
    return opened;
  }

  /** Ends the workers and empties the table. */
  async clear(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop(AbortSignal.abort())));
    await this.pool.query('truncate replaysafe.task');
  }

  async close(): Promise<void> {
    await this.clear();
    await this.pool.end();
    await this.database.drop();
  }

  /** Enqueues in a transaction of its own. */
  async enqueue(task: Partial<NewTask<keyof Kinds, unknown>> = {}): Promise<string> {
    const whole = { kind: 'receipt', key: 'k-1', input: { n: 1 }, ...task } as NewTask<'receipt', { n: number }>;
    const { id } = await this.sql.transaction((tx) => this.tasks.enqueue(tx, whole));
    return id;
  }

  start(handlers: TaskHandlers<Kinds>, options: Partial<TaskWorkerOptions<Kinds>> = {}): TaskWorker {
    const worker = createTaskWorker({ sql: this.sql, kinds, handlers, backoff: { baseMs: 1, capMs: 2 }, ...options });
    this.#workers.push(worker);
    worker.start();
    return worker;
  }
}

/** The next event of a name that fits. */
export function nextEvent<Name extends EventName>(
  name: Name,
  fits: (payload: EventPayloads[Name]) => boolean = () => true,
): Promise<EventPayloads[Name]> {
  return new Promise((resolve) => {
    const subscription = onEvent(name, (payload) => {
      if (!fits(payload)) return;
      subscription.unsubscribe();
      resolve(payload);
    });
  });
}
