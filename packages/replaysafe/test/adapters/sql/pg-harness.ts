import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createDatabase, startFaultProxy, startPostgres } from '@replaysafe/test-services';
import pg from 'pg';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import { SQL_CONFORMANCE_TABLES, type OpenOptions, type SqlHarness } from '../../../src/testing/sql-conformance.js';

type PgHarness = SqlHarness<pg.PoolClient>;

export type PgVariant = 'plain' | 'pipeline' | 'without transaction status';

/** A pool of the kind under test. The last kind is what pg was before 8.21. */
export function poolOf(variant: PgVariant, config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool({ ...config, ...(variant === 'pipeline' ? { pipeline: true } : {}) });
  if (variant === 'without transaction status') {
    pool.on('connect', (client) => Object.assign(client, { getTransactionStatus: undefined }));
  }
  return pool;
}

/** What the published suite needs, for one kind of pool and a database of its own. */
export async function pgHarness(
  variant: PgVariant,
  serverUrl: string,
): Promise<{ readonly harness: PgHarness; readonly stop: () => Promise<void> }> {
  const database = await createDatabase(serverUrl);
  const pools: pg.Pool[] = [];
  const children: ChildProcess[] = [];
  const pool = (config: pg.PoolConfig = {}): pg.Pool => {
    const made = poolOf(variant, { connectionString: database.url, max: 4, ...config });
    pools.push(made);
    return made;
  };
  const observing = new pg.Pool({ connectionString: database.url, max: 2 });
  pools.push(observing);
  await observing.query(SQL_CONFORMANCE_TABLES);
  const main = pool();
  const owning = new pg.Pool({ connectionString: database.url, max: 1 });
  pools.push(owning);

  const harness: PgHarness = {
    sql: fromPg(main),
    observer: fromPg(observing),
    run: (handle, text) => handle.query(text),
    open: async (options) => {
      const own = pool(configOf(options));
      return { sql: fromPg(own), close: () => Promise.resolve() };
    },
    openThroughProxy: async () => {
      const { hostname, port } = new URL(database.url);
      const proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
      const own = pool({ connectionString: proxy.through(database.url) });
      return {
        sql: fromPg(own),
        withholdReplies: () => {
          proxy.withholdReplies();
        },
        cut: () => {
          proxy.cut();
        },
        close: () => proxy.stop(),
      };
    },
    ownHandle: async () => {
      const client = await owning.connect();
      return {
        handle: client,
        run: (text) => client.query(text),
        close: async () => {
          client.release(true);
        },
      };
    },
    noHandles: [main, new pg.Client(database.url)],
    spawnOwner: async (text) => {
      const program = new URL('../../programs/sql-owner.ts', import.meta.url);
      const child = spawn(process.execPath, ['--import', 'tsx', program.pathname, database.url, text], {
        stdio: 'inherit',
      });
      children.push(child);
      return {
        kill: () => child.kill('SIGKILL'),
        stop: async () => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          child.kill('SIGKILL');
          await once(child, 'exit');
        },
      };
    },
    openWithoutStandby: async () => {
      const server = await startPostgres({ alwaysOwn: true, settings: { synchronous_standby_names: 'nobody' } });
      const own = poolOf(variant, { connectionString: server.url });
      const observer = new pg.Pool({ connectionString: server.url });
      return {
        sql: fromPg(own),
        observer: fromPg(observer),
        close: async () => {
          await own.end();
          await observer.end();
          await server.stop();
        },
      };
    },
  };
  return {
    harness,
    stop: async () => {
      await Promise.all(pools.map((one) => one.end()));
      await database.drop();
    },
  };
}

function configOf({ settings = {}, max = 2, unreachable = false }: OpenOptions): pg.PoolConfig {
  const options = Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value}`)
    .join(' ');
  return {
    max,
    ...(options === '' ? {} : { options }),
    // Port 1 is reserved and nothing listens there.
    ...(unreachable ? { connectionString: undefined, host: '127.0.0.1', port: 1 } : {}),
  };
}
