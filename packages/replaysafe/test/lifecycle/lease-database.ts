import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { inject } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createLifecycle, type LeasedRunContext, type LeasedWorkerOptions } from '../../src/lifecycle/index.js';
import { migrate } from '../../src/migrate/index.js';
import { type Logger } from '../../src/ports/logger.js';
import { type SqlPort } from '../../src/ports/sql.js';

export interface LeaseRecord {
  readonly name: string;
  readonly owner: string | null;
  readonly epoch: string;
  readonly failures: number;
  readonly expired: boolean | null;
  readonly leased_until: Date | null;
  readonly last_finished_at: Date | null;
  readonly not_before: Date | null;
  readonly slot: Date | null;
}

export type Sql = SqlPort<pg.PoolClient>;

/** A database of one's own with the library's tables and one for what runs write. */
export class LeaseDatabase {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  readonly sql: Sql;

  private constructor(database: TestDatabase) {
    this.database = database;
    this.pool = new pg.Pool({ connectionString: database.url, max: 12 });
    this.pool.on('error', () => undefined);
    this.sql = fromPg(this.pool);
  }

  static async open(): Promise<LeaseDatabase> {
    const opened = new LeaseDatabase(await createDatabase(inject('databaseUrl')));
    await migrate(opened.sql);
    await opened.pool.query('create table effect (epoch bigint not null, note text)');
    return opened;
  }

  async clear(): Promise<void> {
    await this.pool.query('truncate replaysafe.worker_lease, effect');
  }

  async close(): Promise<void> {
    await this.pool.end();
    await this.database.drop();
  }

  async row(): Promise<LeaseRecord | undefined> {
    const { rows } = await this.pool.query<LeaseRecord>(
      'select *, leased_until <= clock_timestamp() as expired from replaysafe.worker_lease',
    );
    return rows[0];
  }

  /** Resolves when a row is there that the predicate accepts. */
  async rowThat(accepts: (row: LeaseRecord) => boolean): Promise<LeaseRecord> {
    for (;;) {
      const row = await this.row();
      if (row && accepts(row)) return row;
    }
  }

  /** Resolves when a session waits for a lock. */
  async somebodyWaits(): Promise<void> {
    for (;;) {
      const { rows } = await this.pool.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (rows.length > 0) return;
    }
  }

  async effects(): Promise<string[]> {
    const { rows } = await this.pool.query<{ epoch: string }>('select epoch::text from effect order by epoch');
    return rows.map(({ epoch }) => epoch);
  }
}

export interface PodOptions extends Partial<Omit<LeasedWorkerOptions<pg.PoolClient>, 'lease'>> {
  readonly sql: Sql;
  readonly leaseMs?: number;
  readonly everyMs?: number;
  readonly cron?: (from: Date) => Date | null;
  readonly logger?: Logger;
  readonly workMs?: number;
  readonly run: (context: LeasedRunContext<pg.PoolClient>) => Promise<void>;
}

/** A lifecycle of its own with one leased worker: what a pod is to the row. */
export function startPod({ sql, leaseMs = 30_000, everyMs, cron, logger, workMs, run, ...options }: PodOptions) {
  const lifecycle = createLifecycle({
    name: 'pod',
    lameDuckMs: 0,
    ...(logger && { logger }),
    ...(workMs !== undefined && { workMs }),
  });
  const pace = cron === undefined ? { everyMs: everyMs ?? 60_000 } : { cron };
  lifecycle.worker<pg.PoolClient>(
    { name: 'one-of-all', ...pace, run },
    { jitter: 0, ...options, lease: { sql, leaseMs } },
  );
  lifecycle.started();
  return lifecycle;
}

/** The port, with each statement of the lease told by its name before it is sent. */
export function watched(sql: Sql, onStatement: (name: string) => void): Sql {
  return {
    ...sql,
    transaction: (fn, options) =>
      sql.transaction((tx) => {
        const query = tx.query.bind(tx);
        tx.query = async (text, params) => {
          const result = await query(text, params);
          onStatement(/replaysafe:worker-lease\.(\w+)/.exec(text)?.[1] ?? text);
          return result as never;
        };
        return fn(tx);
      }, options),
  };
}

/** Resolves when `count` calls of `tick` have been made since then. */
export function counter() {
  let seen = 0;
  let waiting: { at: number; resolve: () => void }[] = [];
  return {
    tick: () => {
      seen++;
      waiting = waiting.filter(({ at, resolve }) => {
        if (at <= seen) resolve();
        return at > seen;
      });
    },
    get seen() {
      return seen;
    },
    more: (count: number): Promise<void> =>
      new Promise((resolve) => {
        waiting.push({ at: seen + count, resolve });
      }),
  };
}

export function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
