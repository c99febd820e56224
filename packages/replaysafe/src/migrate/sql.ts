/** The statements of the room, for a quoted schema name. */
export const migrateSql = (schema: string) => ({
  /**
   * Reads the catalog's tables, which see what was committed before the statement. `to_regclass` would not do: a session
   * remembers that a name did not exist, and waiting for an advisory lock does not make it forget.
   */
  exists: `/* replaysafe:migrate.exists */
    select exists (
      select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where n.nspname = $1 and c.relname = 'schema_migration'
    ) as present`,

  /** Whole table, a row for each file ever applied. */
  applied: `/* replaysafe:migrate.applied */
    select name, checksum, breaking, applied_at as "appliedAt" from ${schema}.schema_migration order by name`,

  /**
   * Held to the end of the transaction, taken before anything else: two processes that migrate wait here, never on a
   * table. Waiting for it may take as long as another process migrates; every later lock is one that traffic queues
   * behind, so the bound is lowered as soon as we have it (the columns of a row are computed from left to right).
   */
  lock: `/* replaysafe:migrate.lock */
    select pg_advisory_xact_lock(1919906669, hashtext($1)), set_config('lock_timeout', $2, true)`,

  /** Primary key: a second record of one file fails. */
  record: `/* replaysafe:migrate.record */
    insert into ${schema}.schema_migration (name, checksum, breaking) values ($1, $2, $3)`,
});

export interface AppliedRow {
  readonly name: string;
  readonly checksum: string;
  readonly breaking: boolean;
  readonly appliedAt: Date;
}

/** The text of a migration file for one schema. */
export function migrationText(text: string, schema: string): string {
  return `/* replaysafe:migrate.apply */\n${text.replaceAll('{{schema}}', schema)}`;
}
