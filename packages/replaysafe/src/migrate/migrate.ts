import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { optional, parseOptions, port, custom, schemaName } from '../options.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { isContentionState, poolHint, sqlState, type SqlPort, type SqlTransaction } from '../ports/sql.js';
import type { StopSignals } from '../ports/stop.js';
import { readMigrations, type MigrationFile } from './files.js';
import { migrateSql, migrationText } from './sql.js';
import { refuseUnusable } from './states.js';
import { readState } from './status.js';

export interface MigrateOptions {
  /** Default `replaysafe`. */
  readonly schema?: string;
  readonly logger?: Logger;
  /** A process that is stopping starts no migration (R-SHUT-DB-3). */
  readonly signals?: StopSignals;
}

/** How long one process waits for another that migrates, in milliseconds. */
const PEER_WAIT_MS = 300_000;
/** How long traffic may queue behind a lock that a migration waits for, in milliseconds. */
const LOCK_WAIT_MS = 5_000;
/** Bound of one file's text, in milliseconds: an index on a large table takes its time. */
const STATEMENT_MS = 1_800_000;

const SQL_OPTION = { sql: port<SqlPort>(['query', 'transaction'], undefined, poolHint) };

const MIGRATE_OPTIONS = {
  schema: schemaName(),
  logger: port<Logger>(['info'], silentLogger),
  signals: optional(
    custom<StopSignals>((given) =>
      given !== null && typeof given === 'object' && 'stopping' in given ? undefined : 'must be stop signals',
    ),
  ),
};

/**
 * Applies what this version ships and the database does not have, one transaction a file. Safe when many processes start
 * at once, and harmless when there is nothing to do: then it only reads.
 *
 * @throws RS_MIGRATE_NEWER_SCHEMA when a newer version has applied a breaking migration
 * @throws RS_MIGRATE_CHANGED when an applied file has another text now
 * @throws RS_MIGRATE_FAILED when a file cannot be applied; it is rolled back, the files before it stay applied
 * @throws RS_MIGRATE_STOPPING, RS_SQL_UNAVAILABLE, RS_TX_DEADLINE, RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export async function migrate(
  sql: SqlPort,
  options?: MigrateOptions,
): Promise<{ readonly applied: readonly string[] }> {
  parseOptions('migrate', SQL_OPTION, { sql });
  const { schema, logger, signals } = parseOptions('migrate', MIGRATE_OPTIONS, options);
  const files = await readMigrations();
  const applied: string[] = [];
  const before = await readState(sql, schema, files);
  refuseUnusable(before);
  for (const file of before.pending) {
    if (signals?.stopping.aborted) {
      throw new ReplaysafeError('RS_MIGRATE_STOPPING', { detail: `R-SHUT-DB-3; ${file.name} is pending` });
    }
    if (!(await applyOne(sql, schema, files, file, signals?.deadline))) continue;
    applied.push(file.name);
    emit('migrate.applied', { name: file.name });
    logger.info({ migration: file.name, schema }, 'migration applied');
  }
  return { applied };
}

/** Whether this process applied the file; another may have been faster. */
async function applyOne(
  sql: SqlPort,
  schema: string,
  files: readonly MigrationFile[],
  file: MigrationFile,
  deadline: AbortSignal | undefined,
): Promise<boolean> {
  const statements = migrateSql(`"${schema}"`);
  return sql.transaction(
    async (tx) => {
      await tx.query(statements.lock, [schema, String(LOCK_WAIT_MS)]);
      const state = await readState(tx, schema, files);
      refuseUnusable(state);
      if (!state.pending.some((pending) => pending.name === file.name)) return false;
      await runFile(tx, schema, file);
      await tx.query(statements.record, [file.name, file.checksum, file.breaking]);
      return true;
    },
    {
      statementTimeoutMs: STATEMENT_MS,
      lockTimeoutMs: PEER_WAIT_MS,
      ...(deadline === undefined ? {} : { deadline }),
    },
  );
}

async function runFile(tx: SqlTransaction, schema: string, file: MigrationFile): Promise<void> {
  try {
    await tx.query(migrationText(file.text, `"${schema}"`));
  } catch (cause) {
    const state = sqlState(cause);
    // Others' locks and lost connections say nothing about the file.
    if (state === undefined || isContentionState(state)) throw cause;
    throw new ReplaysafeError('RS_MIGRATE_FAILED', { cause, detail: file.name });
  }
}
