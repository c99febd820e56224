import { hasCode } from '../errors.js';
import { isInfrastructureState, sqlState } from '../ports/sql.js';
import type { ProblemCode } from './problem.js';

const SERIALIZATION_FAILURE = '40001';
const DEADLOCK = '40P01';

/**
 * What a failed transaction is answered with, or nothing where the error is the handler's own and belongs to the framework.
 * A handler is never run again inside one request: what the database rolled back is for the client to repeat (P4).
 *
 * @param error what the transaction ended with
 * @param failure the first statement that failed in it, even if the handler hid it
 */
export function problemOfFailure(error: unknown, failure: unknown): ProblemCode | undefined {
  // Only statements of ours end like this: the record's, or those of an outbox that the handler writes to.
  if (hasCode(error, 'RS_MIGRATE_PENDING')) return 'RS_MIGRATE_PENDING';
  if (hasCode(error, 'RS_TX_OUTCOME_UNKNOWN')) return 'RS_TX_OUTCOME_UNKNOWN';
  if (hasCode(error, 'RS_SQL_UNAVAILABLE', 'RS_TX_DEADLINE')) return 'RS_IDEMPOTENCY_ROLLED_BACK';
  const state = sqlState(failure) ?? sqlState(error);
  if (state === SERIALIZATION_FAILURE || state === DEADLOCK || isInfrastructureState(state)) {
    return 'RS_IDEMPOTENCY_ROLLED_BACK';
  }
  if (hasCode(error, 'RS_TX_ABORTED')) return 'RS_TX_ABORTED';
  if (hasCode(error, 'RS_TX_LOST')) return 'RS_TX_LOST';
  if (hasCode(error, 'RS_TX_DANGLING')) return 'RS_TX_DANGLING';
  return undefined;
}

/** What a failure before the handler is answered with: nothing was executed. */
export function problemOfStore(error: unknown): 'RS_MIGRATE_PENDING' | 'RS_IDEMPOTENCY_STORE_UNAVAILABLE' {
  return hasCode(error, 'RS_MIGRATE_PENDING') ? 'RS_MIGRATE_PENDING' : 'RS_IDEMPOTENCY_STORE_UNAVAILABLE';
}
