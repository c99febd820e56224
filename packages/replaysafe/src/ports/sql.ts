import { ReplaysafeError } from '../errors.js';

export interface SqlResult<Row> {
  readonly rows: readonly Row[];
  /** Rows returned or changed. */
  readonly rowCount: number;
}

/** Runs one statement with `$1` parameters. */
export interface SqlExecutor {
  query<Row = Record<string, unknown>>(text: string, params?: readonly unknown[]): Promise<SqlResult<Row>>;
}

/** A transaction that the port has opened. Unusable as soon as it has ended (RS_TX_REVOKED). */
export interface SqlTransaction<Tx = unknown> extends SqlExecutor {
  /** What the application's own code uses: a `pg` client, an `EntityManager`, … */
  readonly handle: Tx;
  /** `pg_current_xact_id()` of this transaction. */
  readonly xid: string;
  /**
   * The error of a statement that failed in this transaction outside a savepoint, as far as the adapter sees it: from
   * then on the server ignores everything, whatever the callback returns.
   */
  readonly failure: unknown;
  /** Runs `fn` inside a savepoint: the way to survive an expected database error. */
  savepoint<T>(fn: () => Promise<T>): Promise<T>;
}

export interface TransactionOptions {
  /** Bound of each statement, in milliseconds. Default 10,000. Does not bound COMMIT. */
  readonly statementTimeoutMs?: number;
  /** Bound of each wait for a lock, in milliseconds. Default 5,000. */
  readonly lockTimeoutMs?: number;
  /** The server ends the session when it waits longer than this for our next statement. Default 15,000. */
  readonly idleTimeoutMs?: number;
  /**
   * When it aborts, the connection is dropped: before COMMIT was sent the transaction is rolled back (RS_TX_DEADLINE),
   * after that its outcome is unknown (RS_TX_OUTCOME_UNKNOWN). COMMIT is never cancelled.
   */
  readonly deadline?: AbortSignal;
  /**
   * The last statement before COMMIT. It must return exactly one row, made of our own rows; with it the port checks that the
   * transaction is still the one it opened. Without it the port checks the transaction alone.
   */
  readonly verify?: { readonly text: string; readonly params: readonly unknown[] };
}

/**
 * What the library needs of a PostgreSQL driver. A commit counts only when the server answers `COMMIT`.
 *
 * Every transaction begins with READ COMMITTED said aloud and with SET LOCAL of `statement_timeout`, `lock_timeout`,
 * `idle_in_transaction_session_timeout`, `client_connection_check_interval` and `synchronous_commit = on` where the
 * server's default is off, so that it behaves the same behind a transaction pooler.
 */
export interface SqlPort<Tx = unknown> extends SqlExecutor {
  /**
   * @throws what `fn` throws, after a rollback
   * @throws RS_TX_ABORTED when a statement failed and `fn` swallowed it
   * @throws RS_TX_LOST when `fn` ended the transaction itself, or `verify` found no row
   * @throws RS_TX_DEADLINE, RS_TX_OUTCOME_UNKNOWN
   * @throws RS_SQL_UNAVAILABLE when no connection can be had
   */
  transaction<T>(fn: (tx: SqlTransaction<Tx>) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /**
   * The caller's own open transaction as an executor. Statements are handed to the driver synchronously, in the tick of
   * the call, so that they stand before a COMMIT that the caller sends next.
   * @throws RS_OUTBOX_NO_TRANSACTION when the handle is a pool, idle, or no handle of this driver
   */
  join(tx: Tx): SqlExecutor;
}

/** The methods by which an option that takes a {@link SqlPort} knows one. */
export const SQL_PORT_METHODS = ['query', 'transaction', 'join'] as const;

/** Whether a caller's transaction is one that the port has opened, and not the driver's own handle. */
export function isPortTransaction<Tx>(tx: Tx | SqlTransaction<Tx>): tx is SqlTransaction<Tx> {
  const candidate = tx as Partial<SqlTransaction<Tx>> | null | undefined;
  return (
    typeof candidate === 'object' &&
    candidate !== null &&
    typeof candidate.xid === 'string' &&
    typeof candidate.query === 'function' &&
    typeof candidate.savepoint === 'function'
  );
}

/** What to tell a caller who hands over the pool of `pg` where a {@link SqlPort} is asked for. */
export function poolHint(given: object): string | undefined {
  const looksLike = 'connect' in given && 'query' in given && !('transaction' in given);
  return looksLike ? 'wrap the pool: fromPg(pool)' : undefined;
}

const SQL_STATE = /^[0-9A-Z]{5}$/;

/** The SQLSTATE of a driver's error, wherever in its chain of causes it stands. */
export function sqlState(error: unknown): string | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const code = 'code' in current ? current.code : undefined;
    // Node's own codes (`EPIPE`) have the same shape; a server's error also names a severity.
    if (typeof code === 'string' && SQL_STATE.test(code) && 'severity' in current) return code;
  }
  return undefined;
}

const INFRASTRUCTURE_STATES = /^(08...|53...|57P0[123]|58...|25006|25P03|25P04)$/;
const CONTENTION_STATES = /^(40001|40P01|55P03|57014)$/;

/** Whether an error tells of the server, not of the statement: lost connection, out of resources, failover, restart. */
export function isInfrastructureState(state: string | undefined): boolean {
  return state !== undefined && INFRASTRUCTURE_STATES.test(state);
}

/** Whether an error tells of others' locks: serialization failure, deadlock, lock or statement time-out. */
export function isContentionState(state: string | undefined): boolean {
  return state !== undefined && CONTENTION_STATES.test(state);
}

const MISSING_STATES = /^(42P01|3F000|42883)$/;

/** Whether a table, schema or function that the statement names does not exist. */
export function isMissingRelation(state: string | undefined): boolean {
  return state !== undefined && MISSING_STATES.test(state);
}

/**
 * What to throw where a statement of the library's own has failed: RS_MIGRATE_PENDING in place of an error that only a
 * forgotten migration explains, any other error as it is. Not for the statements of the application.
 */
export function orMigratePending(cause: unknown): unknown {
  return isMissingRelation(sqlState(cause)) ? new ReplaysafeError('RS_MIGRATE_PENDING', { cause }) : cause;
}
