import { hasCode } from '../errors.js';
import { isContentionState, isInfrastructureState, sqlState } from '../ports/sql.js';
import type { RunFailure } from './states.js';

/** What is known about a failure when it is judged. */
export interface Evidence {
  readonly error: unknown;
  /**
   * Where it came up. `before`: while a connection, the transaction or the dedup rows were got, which no handler has a part
   * in. `inside`: in a handler or at the commit.
   */
  readonly where: 'before' | 'inside';
  /** Position in the run of the handler that was running. */
  readonly culprit: number | undefined;
  /** The first failed statement of the transaction, whatever the handler made of it. */
  readonly transactionFailure: unknown;
}

const IN_FAILED_TRANSACTION = '25P02';

/**
 * Judges by SQLSTATE and by `retryable`, never by a message. A handler's own error and a driver's error look alike where there is
 * no SQLSTATE: then the database is asked whether it is there. So it is for a handler that hung, for it may be the database that
 * does.
 *
 * @param databaseAnswers asks on a connection of its own
 */
export async function classify(evidence: Evidence, databaseAnswers: () => Promise<boolean>): Promise<RunFailure> {
  const { error, culprit } = evidence;
  if (evidence.where === 'before') return { kind: 'infrastructure', error, culprit: undefined };
  const hung = hasCode(error, 'RS_INBOX_HANDLER_TIMEOUT');

  const own = sqlState(error);
  // A statement after the failed one is told only that it is too late.
  const state =
    own === undefined || own === IN_FAILED_TRANSACTION ? (sqlState(evidence.transactionFailure) ?? own) : own;
  if (isInfrastructureState(state)) return { kind: 'infrastructure', error, culprit: undefined };
  if (isContentionState(state)) return { kind: 'contention', error, culprit };
  if (!hung && isRetryable(error)) return { kind: 'infrastructure', error, culprit };
  if (state === undefined && !(await databaseAnswers())) return { kind: 'infrastructure', error, culprit: undefined };
  return { kind: 'handler', error, culprit };
}

/**
 * Whether an error says of itself, or of its cause, that the same again can succeed: a remote system is down, an outcome is
 * unknown. Such an error uses up no attempt: an outage longer than all attempts would send good events to the dead letters.
 */
export function isRetryable(error: unknown): boolean {
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    if ('retryable' in current && typeof current.retryable === 'boolean') return current.retryable;
  }
  return false;
}
