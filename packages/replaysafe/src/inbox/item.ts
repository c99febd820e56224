import type { ReceivedRecord } from '../ports/broker.js';
import { readRecord, type Content, type Reading } from './event.js';

/** Where the remote calls before the transaction stand. */
export type Preparation =
  | { readonly state: 'none' }
  | { readonly state: 'ready'; readonly value: unknown }
  | { readonly state: 'failed'; readonly error: unknown };

/** A decision to give an event up. Once taken it stays, until the transaction that writes it is committed. */
export interface Surrender {
  readonly code: string;
  readonly error: unknown;
}

/** One record of a batch and what has become of it so far. */
export interface Item {
  readonly record: ReceivedRecord;
  readonly content: Content;
  /** Failures that were its own. */
  attempts: number;
  /** Its effect is known to be committed, or an earlier record of the batch has the same id. */
  duplicate: boolean;
  /** It failed in company: it gets a transaction of its own. */
  alone: boolean;
  preparation: Preparation;
  surrender: Surrender | undefined;
}

/**
 * Attempts of the records that have failed, kept over a redelivery. In memory: a process that dies begins to count anew,
 * which costs attempts, never an event.
 */
export interface AttemptBook {
  of(record: ReceivedRecord): number;
  set(record: ReceivedRecord, attempts: number): void;
  forget(record: ReceivedRecord): void;
}

const LONGEST_BOOK = 10_000;

export function attemptBook(): AttemptBook {
  const book = new Map<string, number>();
  const place = (record: ReceivedRecord): string =>
    `${record.topic}/${String(record.partition)}/${record.offset.toString()}`;
  return {
    of: (record) => (book.size === 0 ? 0 : (book.get(place(record)) ?? 0)),
    set: (record, attempts) => {
      book.set(place(record), attempts);
      // Partitions that left with an open failure are forgotten at last, oldest first.
      if (book.size > LONGEST_BOOK) for (const oldest of book.keys()) return void book.delete(oldest);
    },
    forget: (record) => {
      if (book.size > 0) book.delete(place(record));
    },
  };
}

/** Reads the records of a batch; the first of several with the same id stands for all. */
export function readItems(records: readonly ReceivedRecord[], reading: Reading, attempts: AttemptBook): Item[] {
  const seen = new Set<string>();
  return records.map((record) => {
    const content = readRecord(record, reading);
    const duplicate = content.id !== undefined && seen.has(content.id);
    if (content.id !== undefined) seen.add(content.id);
    return {
      record,
      content,
      attempts: attempts.of(record),
      duplicate,
      alone: false,
      preparation: { state: 'none' },
      surrender: content.kind === 'unusable' ? { code: content.code, error: content.reason } : undefined,
    };
  });
}

/**
 * The items from `from` on that may share a transaction: up to `to`, to the first that is given up or wants to be alone. An
 * item at `from` that wants to be alone is alone.
 */
export function runFrom(items: readonly Item[], from: number, to: number): readonly Item[] {
  if (items[from]?.alone) return items.slice(from, from + 1);
  let end = from;
  while (end < to) {
    const item = items[end];
    if (item === undefined || (!item.duplicate && (item.surrender !== undefined || item.alone))) break;
    end++;
  }
  return items.slice(from, end);
}
