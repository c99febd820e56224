import type pg from 'pg';
import type { Logger, Resource } from 'replaysafe';

/** One row for each repetition that had no effect, so that it can be told how often a guard was needed. */
export const ABSORBED_TABLE = `
  create table if not exists absorbed_duplicate (
    id bigint generated always as identity primary key,
    ref text not null,
    absorbed_at timestamptz not null default clock_timestamp()
  );`;

const INSERT = `/* shop:absorbed.insert */ insert into absorbed_duplicate (ref) select unnest($1::text[])`;

/**
 * Writes down absorbed duplicates beside the work, never in its way. A process that is killed takes the rows with it that it was
 * about to write: the count is a lower bound, and no promise hangs on it.
 */
export function createAbsorbedLog(pool: pg.Pool, logger: Logger): Resource & { note(refs: readonly string[]): void } {
  const writing = new Set<Promise<unknown>>();
  return {
    name: 'absorbed-log',
    note: (refs) => {
      const write = pool
        .query(INSERT, [refs])
        .catch((error: unknown) => {
          logger.warn({ err: error }, 'an absorbed duplicate was not written down');
        })
        .finally(() => writing.delete(write));
      writing.add(write);
    },
    stop: async () => {
      await Promise.all(writing);
    },
  };
}
