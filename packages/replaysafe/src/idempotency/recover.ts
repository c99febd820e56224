import { emit } from '../events.js';
import { deadlineAfter } from '../ports/clock.js';
import { refuse, shownHash, type Engine } from './engine.js';
import type { HttpAnswer } from './http.js';
import type { IdempotencyRecord } from './states.js';
import type { Operation } from './store.js';
import { answerOf } from './verdict.js';

const LONGEST_LOOK_MS = 5_000;

/**
 * After COMMIT was sent and no reply came: the record tells, read on another connection. Absent does not mean rolled back, the
 * COMMIT may still be under way; the client's next try meets its row or its lock and so finds out (P2).
 *
 * @param xid the transaction whose COMMIT was lost @param answer what its handler answered
 */
export async function recoverLostCommit<Tx>(
  engine: Engine<Tx>,
  operation: Operation,
  xid: string,
  answer: HttpAnswer,
): Promise<HttpAnswer> {
  const record = await look(engine, operation);
  if (record === undefined) return refuse(engine, 'RS_TX_OUTCOME_UNKNOWN', operation);
  if (record.state === 'completed' && record.writtenBy === withoutEpoch(xid)) {
    emit('idempotency.executed', { keyHash: shownHash(operation), status: answer.status });
    return answer;
  }
  // Ours was rolled back, and another request of this key has been faster than this look. Ourselves are never "in progress".
  return answerOf(engine, operation, record) ?? refuse(engine, 'RS_TX_OUTCOME_UNKNOWN', operation);
}

async function look<Tx>(engine: Engine<Tx>, operation: Operation): Promise<IdempotencyRecord | undefined> {
  try {
    return await readWithin(engine, operation, LONGEST_LOOK_MS);
  } catch (err) {
    engine.options.logger.warn(
      { err, keyHash: shownHash(operation) },
      'the outcome of a commit could not be looked up',
    );
    return undefined;
  }
}

/** A pool without a connect time-out would wait for ever behind a dead network. */
export async function readWithin<Tx>(
  { options, store }: Engine<Tx>,
  operation: Operation,
  longestMs: number,
): Promise<IdempotencyRecord | undefined> {
  const deadline = deadlineAfter(options.clock, longestMs, options.signals?.deadline);
  try {
    const cut = new Promise<never>((_, reject) => {
      const fail = (): void => {
        reject(new Error('the look-up did not end in its time', { cause: deadline.signal.reason }));
      };
      if (deadline.signal.aborted) fail();
      else deadline.signal.addEventListener('abort', fail, { once: true });
    });
    return await Promise.race([store.read(operation), cut]);
  } finally {
    deadline.dispose();
  }
}

/** `xmin` shows the lower 32 bits of the 64 that `pg_current_xact_id()` counts with. */
function withoutEpoch(xid: string): string {
  return (BigInt(xid) & 0xffff_ffffn).toString();
}
