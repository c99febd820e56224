import type { RawClient, RawPool } from './pg-types.js';
import type { RawRunner, TypeormDataSource } from './typeorm-types.js';

const RUNNER = Symbol('the query runner that holds this client');

/**
 * The connections of a DataSource as a pool of `pg`: each is checked out through a query runner, so that TypeORM knows of
 * it, and `dataSource.destroy()` waits for nothing that it does not know.
 */
export function poolOf(dataSource: TypeormDataSource): RawPool {
  return {
    connect: async () => {
      const runner = dataSource.createQueryRunner('master') as RawRunner;
      try {
        return clientOf(runner, (await runner.connect()) as RawClient);
      } catch (error) {
        await runner.release().catch(() => undefined);
        throw error;
      }
    },
  };
}

/** The runner that a client of {@link poolOf}, or a proxy of it, was checked out through. */
export function runnerOf(client: object): RawRunner {
  return (client as { readonly [RUNNER]: RawRunner })[RUNNER];
}

/** The client itself, but given back by way of its runner. */
function clientOf(runner: RawRunner, client: RawClient): RawClient {
  // A transaction replaces it, so that the application cannot give the connection back.
  const release = runner.release.bind(runner);
  const giveBack = (destroy?: boolean): void => {
    const given = destroy === true ? drop(runner, client, release) : release();
    // A client that died was given back by TypeORM already, and the pool says so.
    given.catch(() => undefined);
  };
  return new Proxy(client, {
    get(target, property) {
      if (property === 'release') return giveBack;
      if (property === RUNNER) return runner;
      const value: unknown = Reflect.get(target, property, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** With an error the pool does not use the connection again. TypeORM's public `release` cannot say so. */
async function drop(runner: RawRunner, client: RawClient, release: () => Promise<void>): Promise<void> {
  const reason = new Error('the connection was dropped');
  if (typeof runner.releasePostgresConnection === 'function') return runner.releasePostgresConnection(reason);
  client.release(true);
  return release();
}
