import { ReplaysafeError } from '../../errors.js';
import type { SqlTransaction } from '../../ports/sql.js';
import { transactionOf, type PgTransaction } from './pg-handle.js';
import type { PgClient } from './pg-types.js';
import { runnerOf } from './typeorm-pool.js';
import type { RawRunner, TransactionEvent, TypeormEntityManager } from './typeorm-types.js';

type Own = PgTransaction<PgClient>;

const transactions = new WeakMap<object, Own>();

/** The transaction of this adapter that a query runner belongs to, also after its end. */
export function transactionOfRunner(runner: object): Own | undefined {
  return transactions.get(runner);
}

/** A transaction of the pg adapter whose handle is the EntityManager of the runner that holds its connection. */
export interface ManagedTransaction<Manager> {
  readonly tx: SqlTransaction<Manager>;
  tell(event: TransactionEvent): Promise<void>;
}

/**
 * Gives the runner the transaction's own client in place of the bare one: TypeORM's statements are recorded like any other,
 * and die with the transaction. To TypeORM the transaction is one of its own: what nests in it sets savepoints.
 */
export function managed<Manager extends TypeormEntityManager>(
  inner: SqlTransaction<PgClient>,
): ManagedTransaction<Manager> {
  const own = transactionOf(inner.handle) as Own;
  const runner = runnerOf(inner.handle);
  transactions.set(runner, own);
  const query = runner.query.bind(runner) as (...args: unknown[]) => Promise<unknown>;
  const release = runner.release.bind(runner);
  // TypeORM's own refusal of a released runner does not say what happened; ours comes from `connect`. Releasing twice is harmless.
  Object.defineProperty(runner, 'isReleased', { get: () => false, set: () => undefined });
  Object.assign(runner, {
    isTransactionActive: true,
    transactionDepth: 1,
    // Here and not in the client: TypeORM would wrap what the client throws in an error of its own.
    connect: () => (own.refusal === undefined ? Promise.resolve(inner.handle) : Promise.reject(own.refusal)),
    // Counted from the call on: TypeORM asks its subscribers before the client hears of the statement.
    query: (...args: unknown[]) => own.track(() => query(...args)),
    release: async () => {
      own.lose('the callback released the query runner, whose connection belongs to the port until it returns');
      await (runner.releasePostgresConnection?.(new Error('released inside its transaction')) ?? release());
    },
  });
  return {
    tx: {
      handle: runner.manager as Manager,
      xid: inner.xid,
      get failure() {
        return inner.failure;
      },
      query: (text, params) => inner.query(text, params),
      savepoint: (fn) => inner.savepoint(fn),
    },
    tell: async (event) => {
      await broadcast(runner, event);
    },
  };
}

async function broadcast(runner: RawRunner, event: TransactionEvent): Promise<void> {
  const told: unknown = runner.broadcaster?.broadcast?.(event);
  // 0.3 returns void or a promise, 1.x a promise.
  await told;
}

export function noTransaction(detail: string): ReplaysafeError {
  const what =
    'pass the EntityManager of dataSource.transaction, `handle` of sql.transaction, `ctx.tx`, or `request.idempotency.tx`';
  return new ReplaysafeError('RS_OUTBOX_NO_TRANSACTION', { detail: `${detail}; ${what}` });
}
