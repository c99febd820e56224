import { ReplaysafeError } from '../errors.js';
import { parseOptions, port, schemaName } from '../options.js';
import type { SqlExecutor } from '../ports/sql.js';
import { readMigrations, type MigrationFile } from './files.js';
import { migrateSql, type AppliedRow } from './sql.js';
import { compare, namesOf, refuseUnusable, type MigrationState } from './states.js';

export interface MigrationStatusOptions {
  /** Default `replaysafe`. */
  readonly schema?: string;
}

export interface MigrationStatus {
  readonly schema: string;
  readonly applied: readonly { readonly name: string; readonly appliedAt: Date }[];
  /** Shipped by this version and not applied. */
  readonly pending: readonly string[];
  /** Applied by a newer version; those that are also `breaking` make the schema unusable for this one. */
  readonly unknown: readonly string[];
  readonly breaking: readonly string[];
  /** Applied with another text than this version ships. */
  readonly changed: readonly string[];
}

export const STATUS_OPTIONS = { schema: schemaName() };

/**
 * Reads what is applied and what is not; writes nothing.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID, RS_SQL_UNAVAILABLE
 */
export async function migrationStatus(sql: SqlExecutor, options?: MigrationStatusOptions): Promise<MigrationStatus> {
  const { schema } = parseOptions('migrationStatus', STATUS_OPTIONS, options);
  const state = await readState(sqlOption(sql), schema, await readMigrations());
  return {
    schema,
    applied: state.applied.map(({ name, appliedAt }) => ({ name, appliedAt })),
    pending: state.pending.map((file) => file.name),
    unknown: state.unknown.map((row) => row.name),
    breaking: state.unknown.filter((row) => row.breaking).map((row) => row.name),
    changed: state.changed.map((row) => row.name),
  };
}

/**
 * For services that are migrated by somebody else: refuses to start on a schema that this version cannot use.
 * @throws RS_MIGRATE_PENDING, RS_MIGRATE_NEWER_SCHEMA, RS_MIGRATE_CHANGED, RS_SQL_UNAVAILABLE
 */
export async function assertMigrated(sql: SqlExecutor, options?: MigrationStatusOptions): Promise<void> {
  const { schema } = parseOptions('assertMigrated', STATUS_OPTIONS, options);
  const state = await readState(sqlOption(sql), schema, await readMigrations());
  refuseUnusable(state);
  if (state.pending.length > 0) throw new ReplaysafeError('RS_MIGRATE_PENDING', { detail: namesOf(state.pending) });
}

/** The state as the executor sees it: outside a transaction, or inside the one that holds the lock. */
export async function readState(
  sql: SqlExecutor,
  schema: string,
  files: readonly MigrationFile[],
): Promise<MigrationState> {
  const statements = migrateSql(`"${schema}"`);
  const { rows } = await sql.query<{ present: boolean }>(statements.exists, [schema]);
  if (rows[0]?.present !== true) return compare(files, []);
  return compare(files, (await sql.query<AppliedRow>(statements.applied)).rows);
}

function sqlOption(sql: SqlExecutor): SqlExecutor {
  return parseOptions('migrate', { sql: port<SqlExecutor>(['query']) }, { sql }).sql;
}
