import { ERRORS, hasCode, ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { deadlineAfter } from '../ports/clock.js';
import { sqlState, type SqlTransaction } from '../ports/sql.js';
import { guardedContext } from './context.js';
import { refuse, shownHash, type Engine } from './engine.js';
import { problemOfFailure, problemOfStore } from './failure.js';
import type { HttpAnswer, Run } from './http.js';
import type { ProblemCode } from './problem.js';
import { recoverLostCommit } from './recover.js';
import type { Operation, Store } from './store.js';
import { isDefinitive } from './stored-answer.js';

const IN_FAILED_TRANSACTION = '25P02';
const HANDLERS_MISTAKES: readonly ProblemCode[] = ['RS_TX_ABORTED', 'RS_TX_LOST', 'RS_TX_DANGLING'];

export type Attempt =
  { readonly kind: 'answered'; readonly answer: HttpAnswer } | { readonly kind: 'locked' | 'taken' };

/** How far a transaction has come, for whoever must tell what its failure means. */
interface Progress<Tx> {
  tx: SqlTransaction<Tx> | undefined;
  /** The handler has been entered. */
  started: boolean;
  /** What the handler answered. */
  answer: HttpAnswer | undefined;
  /** Set before we roll back on purpose. */
  leftWith: Attempt | undefined;
}

/**
 * One try to be the request that executes: lock, claim, handler, stored answer, check and COMMIT in one transaction. What is
 * not stored is not committed either, so that a repetition starts from nothing.
 *
 * Without an operation (a request that may come without a key, and did) it is the same transaction without a record.
 *
 * @throws what the handler throws, after the rollback
 */
export async function attempt<Tx>(
  engine: Engine<Tx>,
  operation: Operation | undefined,
  run: Run<Tx>,
): Promise<Attempt> {
  const { sql, clock, signals, transactionTimeoutMs, statementTimeoutMs, lockTimeoutMs, idleTimeoutMs } =
    engine.options;
  const progress: Progress<Tx> = { tx: undefined, started: false, answer: undefined, leftWith: undefined };
  const deadline = deadlineAfter(clock, transactionTimeoutMs, signals?.deadline);
  const bounds = { statementTimeoutMs, lockTimeoutMs, idleTimeoutMs, deadline: deadline.signal };
  const verify = operation && engine.store.verification(operation);
  try {
    const answer = await sql.transaction((tx) => inside(engine, operation, run, progress, tx, deadline.signal), {
      ...bounds,
      ...(verify && { verify }),
    });
    if (operation) emit('idempotency.executed', { keyHash: shownHash(operation), status: answer.status });
    return { kind: 'answered', answer };
  } catch (error) {
    return await conclude(engine, operation, progress, error);
  } finally {
    deadline.dispose();
  }
}

async function inside<Tx>(
  { store }: Engine<Tx>,
  operation: Operation | undefined,
  run: Run<Tx>,
  progress: Progress<Tx>,
  tx: SqlTransaction<Tx>,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  progress.tx = tx;
  const claimed = operation === undefined ? 'claimed' : await store.claim(tx, operation);
  if (claimed !== 'claimed') throw leave(progress, { kind: claimed });
  progress.started = true;
  const answer = await run(guardedContext(tx, operation, signal));
  progress.answer = answer;
  if (!isDefinitive(answer.status)) throw leave(progress, { kind: 'answered', answer });
  // Told here, with its cause: the next statement would only hear that the transaction is aborted.
  const { failure } = tx;
  if (hasCode(failure, 'RS_TX_LOST')) throw failure;
  if (failure !== undefined) throw new ReplaysafeError('RS_TX_ABORTED', { cause: failure });
  if (operation !== undefined && !(await completed(store, tx, operation, answer))) {
    throw new ReplaysafeError('RS_TX_LOST', { detail: 'the claim is gone' });
  }
  return answer;
}

async function completed(store: Store, tx: SqlTransaction, operation: Operation, answer: HttpAnswer): Promise<boolean> {
  try {
    return await store.complete(tx, operation, answer);
  } catch (error) {
    // A statement that the handler did not wait for has failed since.
    if (sqlState(error) !== IN_FAILED_TRANSACTION) throw error;
    throw new ReplaysafeError('RS_TX_ABORTED', { cause: tx.failure ?? error });
  }
}

function leave<Tx>(progress: Progress<Tx>, outcome: Attempt): Error {
  progress.leftWith = outcome;
  return new Error('rolled back on purpose');
}

async function conclude<Tx>(
  engine: Engine<Tx>,
  operation: Operation | undefined,
  progress: Progress<Tx>,
  error: unknown,
): Promise<Attempt> {
  const { leftWith, tx, answer } = progress;
  if (leftWith !== undefined) {
    if (operation && leftWith.kind === 'answered') {
      emit('idempotency.discarded', { keyHash: shownHash(operation), status: leftWith.answer.status });
    }
    return leftWith;
  }
  const code = progress.started ? problemOfFailure(error, tx?.failure) : problemOfStore(error);
  if (code === undefined) throw error;
  report(engine, code, error, operation);
  return { kind: 'answered', answer: await answerFailure(engine, operation, code, tx, answer) };
}

async function answerFailure<Tx>(
  engine: Engine<Tx>,
  operation: Operation | undefined,
  code: ProblemCode,
  tx: SqlTransaction<Tx> | undefined,
  answer: HttpAnswer | undefined,
): Promise<HttpAnswer> {
  if (code !== 'RS_TX_OUTCOME_UNKNOWN') return refuse(engine, code, operation);
  // Without a key nobody can look up what became of it, and a repetition would be a second operation.
  if (operation === undefined) return refuse(engine, code, operation, { retryable: false });
  if (tx === undefined || answer === undefined) return refuse(engine, code, operation);
  return recoverLostCommit(engine, operation, tx.xid, answer);
}

function report<Tx>({ options }: Engine<Tx>, code: ProblemCode, err: unknown, operation: Operation | undefined): void {
  const fields = { code, err, ...(operation && { keyHash: shownHash(operation) }) };
  if (HANDLERS_MISTAKES.includes(code)) options.logger.error(fields, 'a guarded handler lost its transaction');
  else if (code === 'RS_MIGRATE_PENDING') options.logger.error(fields, ERRORS[code].message);
  else options.logger.warn(fields, 'a guarded request was not committed');
}
