import pg from 'pg';
import { hasCode, type Logger, type SqlPort } from 'replaysafe';
import { fromPg } from 'replaysafe/adapters/sql/pg';
import { migrate } from 'replaysafe/migrate';
import { untilDone } from './until-done.js';

export interface Database {
  readonly pool: pg.Pool;
  readonly sql: SqlPort<pg.PoolClient>;
}

/** A pool of one service. Nothing is connected yet. */
export function openDatabase(connectionString: string, logger: Logger): Database {
  const pool = new pg.Pool({ connectionString, max: 12, connectionTimeoutMillis: 5_000 });
  // An idle connection that breaks is replaced by the next query; without a listener it would end the process.
  pool.on('error', (error) => {
    logger.warn({ err: error }, 'an idle database connection broke');
  });
  return { pool, sql: fromPg(pool) };
}

/**
 * Brings the library's tables and the service's own up to date, and waits for a database that is not there yet. Instances that
 * start together wait for one another.
 */
export async function prepareDatabase(
  { sql }: Database,
  tables: string,
  context: { readonly stopping: AbortSignal; readonly logger: Logger },
): Promise<void> {
  await untilDone('prepare the database', context, async () => {
    try {
      await migrate(sql, { logger: context.logger });
      await sql.transaction(async (tx) => {
        // `create table if not exists` alone fails when two do it at once.
        await tx.query(`/* shop:tables.lock */ select pg_advisory_xact_lock(hashtext('shop tables'))`);
        await tx.query(tables);
      });
    } catch (error) {
      // Waiting heals neither.
      if (hasCode(error, 'RS_MIGRATE_NEWER_SCHEMA', 'RS_MIGRATE_CHANGED')) return error;
      throw error;
    }
    return undefined;
  });
}
