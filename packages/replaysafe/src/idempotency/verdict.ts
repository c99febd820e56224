import { emit } from '../events.js';
import { refuse, shownHash, type Engine } from './engine.js';
import type { HttpAnswer } from './http.js';
import { judge, type IdempotencyRecord } from './states.js';
import type { Operation } from './store.js';
import { replayed } from './stored-answer.js';

/** The answer that a found record gives, or nothing while its operation is in progress. */
export function answerOf<Tx>(
  engine: Engine<Tx>,
  operation: Operation,
  record: IdempotencyRecord,
): HttpAnswer | undefined {
  const verdict = judge(record, operation.fp, operation.fpVersion);
  switch (verdict.kind) {
    case 'replay':
      emit('idempotency.replayed', { keyHash: shownHash(operation), status: verdict.answer.status });
      return replayed(verdict.answer);
    case 'reused':
      return refuse(engine, 'RS_IDEMPOTENCY_KEY_REUSED', operation);
    case 'response-unavailable':
      return refuse(engine, 'RS_IDEMPOTENCY_RESPONSE_UNAVAILABLE', operation);
    case 'expired':
      return refuse(engine, 'RS_IDEMPOTENCY_KEY_EXPIRED', operation);
    case 'unreadable':
      return refuse(engine, 'RS_IDEMPOTENCY_STORE_UNAVAILABLE', operation);
    case 'in-progress':
      return undefined;
  }
}
