import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createDatabase, startFaultProxy } from '@replaysafe/test-services';
import pg from 'pg';
import { DataSource, type DataSourceOptions, type EntityManager } from 'typeorm';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import { fromTypeorm } from '../../../src/adapters/sql/typeorm.js';
import { SQL_CONFORMANCE_TABLES, type SqlHarness } from '../../../src/testing/sql-conformance.js';

/** What the published suite needs, for a DataSource and a database of its own. */
export async function typeormHarness(
  serverUrl: string,
): Promise<{ readonly harness: SqlHarness<EntityManager>; readonly stop: () => Promise<void> }> {
  const database = await createDatabase(serverUrl);
  const sources: DataSource[] = [];
  const open = async (max: number, more: { url?: string; options?: string } = {}): Promise<DataSource> => {
    const extra = { max, ...(more.options === undefined ? {} : { options: more.options }) };
    const source = new DataSource({ type: 'postgres', url: more.url ?? database.url, extra });
    sources.push(source);
    return source.initialize();
  };
  const observing = new pg.Pool({ connectionString: database.url, max: 2 });
  await observing.query(SQL_CONFORMANCE_TABLES);
  const main = await open(4);
  const owning = await open(1);
  const released = main.createQueryRunner();
  await released.startTransaction();
  await released.release();

  const harness: SqlHarness<EntityManager> = {
    sql: fromTypeorm(main),
    observer: fromPg(observing),
    run: (handle, text) => handle.query(text),
    open: async ({ settings = {}, max = 2, unreachable = false }) => {
      if (unreachable) {
        const nowhere: DataSourceOptions = { type: 'postgres', url: database.url };
        return { sql: fromTypeorm(new DataSource(nowhere)), close: async () => undefined };
      }
      const options = Object.entries(settings)
        .map(([name, value]) => `-c ${name}=${value}`)
        .join(' ');
      const source = await open(max, options === '' ? {} : { options });
      return { sql: fromTypeorm(source), close: async () => undefined };
    },
    openThroughProxy: async () => {
      const { hostname, port } = new URL(database.url);
      const proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
      const source = await open(2, { url: proxy.through(database.url) });
      return {
        sql: fromTypeorm(source),
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
      const runner = owning.createQueryRunner();
      await runner.connect();
      const verbs: Readonly<Record<string, () => Promise<void>>> = {
        begin: () => runner.startTransaction(),
        commit: () => runner.commitTransaction(),
        rollback: () => runner.rollbackTransaction(),
      };
      return {
        handle: runner.manager,
        run: (text) => (verbs[text] ?? (() => runner.query(text)))(),
        close: () => runner.release(),
      };
    },
    noHandles: [main, main.manager, released.manager, main.createQueryRunner().manager, observing],
    spawnOwner: async (text) => {
      const program = new URL('../../programs/typeorm-owner.ts', import.meta.url);
      const child = spawn(process.execPath, ['--import', 'tsx', program.pathname, database.url, text], {
        stdio: 'inherit',
      });
      return {
        kill: () => child.kill('SIGKILL'),
        stop: async () => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          child.kill('SIGKILL');
          await once(child, 'exit');
        },
      };
    },
  };
  return {
    harness,
    stop: async () => {
      await Promise.all(sources.map((source) => source.destroy()));
      await observing.end();
      await database.drop();
    },
  };
}
