import { deadlineAfter, type Clock } from './clock.js';
import { orMigratePending, type SqlPort, type SqlTransaction, type TransactionOptions } from './sql.js';

/**
 * Bound of one step at the database, in milliseconds. The server's own time-outs end a step before that; this is for a
 * connection that does not answer any more.
 */
export const STEP_MS = 15_000;

/**
 * A transaction of the library's own statements with a deadline of its own, never the signal of the stop (R-SHUT-SCHED-2).
 * @throws RS_MIGRATE_PENDING when a table of the library is missing
 */
export async function boundedTransaction<T>(
  { sql, clock }: { readonly sql: SqlPort; readonly clock: Clock },
  boundMs: number,
  fn: (tx: SqlTransaction) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const deadline = deadlineAfter(clock, boundMs);
  try {
    return await sql.transaction(
      async (tx) => {
        try {
          return await fn(tx);
        } catch (error) {
          throw orMigratePending(error);
        }
      },
      { ...options, deadline: deadline.signal },
    );
  } finally {
    deadline.dispose();
  }
}
