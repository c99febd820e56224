import { ReplaysafeError } from '../errors.js';
import { deriveKey } from '../ports/derive-key.js';
import type { SqlTransaction } from '../ports/sql.js';
import type { IdempotencyContext } from './http.js';
import type { Operation } from './store.js';

export function guardedContext<Tx>(
  sql: SqlTransaction<Tx>,
  operation: Operation | undefined,
  signal: AbortSignal,
): IdempotencyContext<Tx> {
  return {
    sql,
    get tx() {
      return sql.handle;
    },
    key: operation?.key,
    keyFor: (step) => {
      if (operation === undefined) throw new ReplaysafeError('RS_IDEMPOTENCY_KEY_REQUIRED', { detail: 'keyFor' });
      return deriveKey('http', operation.scope, operation.key, step);
    },
    signal,
  };
}

const NEVER = new AbortController().signal;

/** For requests that are not touched: a handler that reaches for the transaction is told that there is none. */
export const UNGUARDED_CONTEXT: IdempotencyContext<never> = {
  get tx(): never {
    throw new ReplaysafeError('RS_IDEMPOTENCY_UNGUARDED');
  },
  get sql(): never {
    throw new ReplaysafeError('RS_IDEMPOTENCY_UNGUARDED');
  },
  key: undefined,
  keyFor: () => {
    throw new ReplaysafeError('RS_IDEMPOTENCY_UNGUARDED');
  },
  signal: NEVER,
};
