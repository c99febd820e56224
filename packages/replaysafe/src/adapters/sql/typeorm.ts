import { ReplaysafeError } from '../../errors.js';
import { parseOptions, port } from '../../options.js';
import { silentLogger, type Logger } from '../../ports/logger.js';
import type { SqlExecutor, SqlPort } from '../../ports/sql.js';
import { unlessCut } from './pg-session.js';
import { fromPg, type FromPgOptions } from './pg.js';
import type { PgClient, PgPool } from './pg-types.js';
import { poolOf } from './typeorm-pool.js';
import { managed, noTransaction, transactionOfRunner, type ManagedTransaction } from './typeorm-transaction.js';
import type { RawRunner, TypeormDataSource, TypeormEntityManager } from './typeorm-types.js';

export type { TypeormDataSource, TypeormEntityManager, TypeormQueryRunner } from './typeorm-types.js';

/** Those of `fromPg`; the logger also hears of subscribers that fail behind a commit. */
export type FromTypeormOptions = FromPgOptions;

/**
 * The SQL port on a TypeORM `DataSource` of type `postgres` (0.3.20 and later, 1.x). The DataSource stays the caller's, who
 * initialises it before the first statement and destroys it last.
 *
 * The handle of a transaction is the `EntityManager` of a query runner; transactions that TypeORM nests in it are
 * savepoints. `join` takes the EntityManager that `dataSource.transaction(async (manager) => …)` hands out.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function fromTypeorm<Source extends TypeormDataSource>(
  dataSource: Source,
  options: FromTypeormOptions = {},
): SqlPort<Source['manager']> {
  if (!isDataSource(dataSource)) {
    throw new ReplaysafeError('RS_OPTION_INVALID', { detail: 'fromTypeorm: needs a DataSource of type "postgres"' });
  }
  const pg = fromPg<PgPool>(poolOf(dataSource) as unknown as PgPool, options);
  const { logger } = parseOptions('fromTypeorm', { logger: port<Logger>(['warn'], silentLogger) }, pick(options));

  return {
    query: (text, params) => pg.query(text, params),
    transaction: async (fn, given) => {
      let opened: ManagedTransaction<Source['manager']> | undefined;
      const tellEnd = async (event: 'AfterTransactionCommit' | 'AfterTransactionRollback'): Promise<void> => {
        try {
          await unlessCut(Promise.resolve(opened?.tell(event)), given?.deadline);
        } catch (err) {
          // The outcome stands: who hears of a commit too late must not make it look like a failure.
          logger.warn({ err, event }, 'a TypeORM subscriber failed behind the end of a transaction');
        }
      };
      try {
        const value = await pg.transaction(async (inner) => {
          opened = managed<Source['manager']>(inner);
          await opened.tell('AfterTransactionStart');
          const result = await fn(opened.tx);
          await opened.tell('BeforeTransactionCommit');
          return result;
        }, given);
        await tellEnd('AfterTransactionCommit');
        return value;
      } catch (error) {
        await tellEnd('AfterTransactionRollback');
        throw error;
      }
    },
    join: (manager) => join(pg, manager),
  };
}

function join(pg: SqlPort<PgClient>, manager: TypeormEntityManager): SqlExecutor {
  const runner = openRunner(manager);
  const own = transactionOfRunner(runner);
  if (own !== undefined) return own;
  if (runner.isReleased) throw noTransaction('the query runner of this EntityManager has been released');
  const client = runner.databaseConnection;
  if (!runner.isTransactionActive || client === undefined || client === null) {
    throw noTransaction('no transaction is open on the query runner of this EntityManager');
  }
  return pg.join(client as PgClient);
}

function openRunner(manager: unknown): RawRunner {
  const given = (manager ?? {}) as Readonly<Record<string, unknown>>;
  if (isDataSource(manager)) throw noTransaction('this is the DataSource; each of its statements commits alone');
  if (typeof given.query !== 'function' || typeof given.getRepository !== 'function') {
    throw noTransaction('this is no EntityManager');
  }
  if (typeof given.queryRunner !== 'object' || given.queryRunner === null) {
    throw noTransaction('this EntityManager has no query runner, so each of its statements commits alone');
  }
  return given.queryRunner as RawRunner;
}

function isDataSource(given: unknown): given is TypeormDataSource {
  const candidate = given as Partial<TypeormDataSource> | null | undefined;
  return (
    typeof candidate === 'object' &&
    candidate !== null &&
    typeof candidate.createQueryRunner === 'function' &&
    candidate.options?.type === 'postgres'
  );
}

function pick(options: FromTypeormOptions): { readonly logger?: Logger } {
  return options.logger === undefined ? {} : { logger: options.logger };
}
