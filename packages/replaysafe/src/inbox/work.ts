import { ReplaysafeError } from '../errors.js';
import { deriveKey } from '../ports/derive-key.js';
import { deadlineAfter, type Clock } from '../ports/clock.js';
import type { ParsedConsumerOptions } from './consumer-options.js';
import type { AttemptBook } from './item.js';
import { orAbort } from './lease.js';
import type { ProcessedEvents } from './processed.js';
import type { InboxSql } from './sql.js';

/** What all batches of a consumer share. */
export interface Work<Tx = unknown, Prepared = unknown> {
  readonly options: ParsedConsumerOptions<Tx, Prepared>;
  readonly statements: InboxSql;
  readonly processed: ProcessedEvents;
  readonly attempts: AttemptBook;
}

/**
 * The key of a remote call (P18), made of the origin event's id, the consumer and the step. An event id lives in the outbox
 * row, so it is as durable as that committed row: after a failover to a standby that lost the row, an order that is made
 * again has another event and so another key. Where that matters, derive the key from the business id:
 * `operationKey('charge', orderId)`.
 *
 * @throws RS_CLIENT_KEY_INVALID for an empty step
 */
export function downstreamKey(consumer: string, eventId: string, step: string): string {
  return deriveKey('inbox', consumer, eventId, step);
}

const QUESTION_TIMEOUT_MS = 10_000;

/**
 * A statement outside a transaction, of which no server-side limit takes care: bounded here, and given up when the signal
 * aborts.
 * @throws RS_SQL_UNAVAILABLE after 10 s
 */
export async function bounded<T>(clock: Clock, question: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  const limit = deadlineAfter(clock, QUESTION_TIMEOUT_MS, signal);
  try {
    return await orAbort(question(), limit.signal);
  } catch (error) {
    if (!limit.signal.aborted) throw error;
    throw new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause: error, detail: 'no answer in time' });
  } finally {
    limit.dispose();
  }
}

/** Whether a fresh connection reaches a database that can be written to. */
export async function databaseAnswers<Tx, Prepared>({ options, statements }: Work<Tx, Prepared>): Promise<boolean> {
  try {
    const { rows } = await bounded(options.clock, () => options.sql.query(statements.probe));
    return rows.length === 1;
  } catch {
    return false;
  }
}

export const interrupted = (): ReplaysafeError => new ReplaysafeError('RS_INBOX_INTERRUPTED');
