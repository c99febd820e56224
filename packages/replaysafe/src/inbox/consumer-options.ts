import { ReplaysafeError } from '../errors.js';
import { callback, custom, integer, oneOf, optional, parseOptions, port, schemaName, text } from '../options.js';
import type { ReceivedRecord, Subscriber } from '../ports/broker.js';
import { systemClock, type Clock } from '../ports/clock.js';
import type { Enqueue, OutboxEvent } from '../ports/enqueue.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { poolHint, type SqlPort, type SqlTransaction } from '../ports/sql.js';
import { stopSignals, type StopSignals } from '../ports/stop.js';
import { eventIdHeader, type InboxEvent } from './event.js';

/** What `prepare` may use. No transaction is open while it runs. */
export interface PrepareContext {
  /**
   * Aborts when the answer cannot be used any more: the partition is lost, the stop's deadline or `prepareTimeoutMs` is
   * reached.
   */
  readonly signal: AbortSignal;
  /**
   * The idempotency key of a remote call, made of the event's id, the consumer and the step: the same after a redelivery, a
   * restart, and in every attempt. 47 printable ASCII characters.
   */
  keyFor(step: string): string;
  readonly logger: Logger;
  /** 1 for the first attempt. Counts what failed with the event alone in its transaction, in this process. */
  readonly attempt: number;
}

/** What `handle` may use. */
export interface HandleContext<Tx> extends PrepareContext {
  /** The driver's handle of the transaction that holds the dedup row: what is written through it commits with that row. */
  readonly tx: Tx;
  /** The same transaction through the port. */
  readonly sql: SqlTransaction<Tx>;
  /**
   * Runs `fn` inside a savepoint: the way to survive an expected database error. Without it a database error that the
   * handler swallows fails the handler (RS_TX_ABORTED).
   */
  savepoint<T>(fn: () => Promise<T>): Promise<T>;
  /** Writes events through the outbox, in this transaction. Needs the option `outbox`. */
  enqueue(events: OutboxEvent | readonly OutboxEvent[]): Promise<readonly { readonly id: string }[]>;
}

export interface ConsumerOptions<Tx = unknown, Prepared = undefined> {
  readonly sql: SqlPort<Tx>;
  readonly subscriber: Subscriber;
  /** The name under which effects are deduplicated. Changing it makes every event fresh again. */
  readonly consumer: string;
  readonly topics: readonly string[];
  /** Consumer group. Default: the consumer's name. Replicas of one consumer share it, no other consumer may. */
  readonly group?: string;
  /** Where a group without offsets begins. Default `earliest`: a new consumer misses nothing. */
  readonly start?: 'earliest' | 'latest';
  /**
   * Remote calls that the effect needs, made before the transaction opens so that no lock is held during them; the answer is
   * handed to `handle`. Called for events that are not settled yet, in offset order within a key. May be called again for the
   * same event: use `ctx.keyFor`.
   */
  readonly prepare?: (event: InboxEvent, ctx: PrepareContext) => Promise<Prepared>;
  /** Applies one event, in offset order. Everything it does through `ctx.tx` happens once. */
  readonly handle: (event: InboxEvent, ctx: HandleContext<Tx>, prepared: Prepared) => Promise<void>;
  /** Where dead letters and `ctx.enqueue` go, usually `createOutbox(…)`. Required unless `deadLetters` is `stall`. */
  readonly outbox?: { readonly enqueue: Enqueue<SqlTransaction<Tx>> };
  /**
   * What becomes of an event that cannot be applied. `outbox` (default): it is parked and its dead letter is written by the
   * same transaction, then the partition goes on. `stall`: the partition waits, trying again with back-off, until a new version
   * of the handler is deployed.
   */
  readonly deadLetters?: 'outbox' | 'stall';
  /** Default: the topic's name with `.dead` behind it. */
  readonly deadLetterTopic?: (topic: string) => string;
  /** The event id of a foreign producer's record. Default: the `event-id` header. Never the offset. */
  readonly eventId?: (record: ReceivedRecord) => string | undefined;
  /** The content type of a record that names none. Default `application/json`. */
  readonly defaultContentType?: string;
  /** How often an event may fail alone in its transaction before it is parked. Default 5. */
  readonly maxAttempts?: number;
  /**
   * Wait before the n-th try: a random time up to `baseMs` doubled with each failure, at most `capMs`. Default 200 and 30,000
   * milliseconds. The partition waits, its heartbeats go on.
   */
  readonly retryBackoff?: { readonly baseMs?: number; readonly capMs?: number };
  /** Failures by contention (SQLSTATE 40001, 40P01, 55P03, 57014) in a row before they count as the handler's. Default 5. */
  readonly maxContentions?: number;
  /** Most events in one transaction. Default 500. */
  readonly batchSize?: number;
  /** Most `prepare` calls at once, over different keys. Default 8. */
  readonly prepareConcurrency?: number;
  /** Limit of one `prepare`, in milliseconds; past it an attempt is used up (RS_INBOX_HANDLER_TIMEOUT). Default 60,000. */
  readonly prepareTimeoutMs?: number;
  /**
   * Limit of one `handle`, in milliseconds; past it the transaction is rolled back and an attempt is used up
   * (RS_INBOX_HANDLER_TIMEOUT). Default 10,000.
   */
  readonly handlerTimeoutMs?: number;
  /** How long `stop()` may take when it is given no deadline, in milliseconds. Default 15,000, or what `signals` say. */
  readonly stopTimeoutMs?: number;
  /** Default `replaysafe`. */
  readonly schema?: string;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** The consumer stops by itself when `stopping` aborts. */
  readonly signals?: StopSignals;
}

export const CONSUMER_DEFAULTS = Object.freeze({
  start: 'earliest',
  deadLetters: 'outbox',
  defaultContentType: 'application/json',
  maxAttempts: 5,
  retryBackoff: Object.freeze({ baseMs: 200, capMs: 30_000 }),
  maxContentions: 5,
  batchSize: 500,
  prepareConcurrency: 8,
  prepareTimeoutMs: 60_000,
  handlerTimeoutMs: 10_000,
  stopTimeoutMs: 15_000,
} as const);

const DOOR = 'createConsumer';
const NAME = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/;

/** @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID */
export function parseConsumerOptions<Tx, Prepared>(given: ConsumerOptions<Tx, Prepared>) {
  type Options = ConsumerOptions<Tx, Prepared>;
  const defaults = CONSUMER_DEFAULTS;
  const parsed = parseOptions(
    DOOR,
    {
      sql: port<SqlPort<Tx>>(['query', 'transaction', 'join'], undefined, poolHint),
      subscriber: port<Subscriber>(['start', 'stop', 'health']),
      consumer: text({ pattern: NAME }),
      topics: custom<readonly string[]>(topicsComplaint),
      group: optional(text()),
      start: oneOf(['earliest', 'latest'], defaults.start),
      prepare: optional(callback<NonNullable<Options['prepare']>>()),
      handle: callback<Options['handle']>(),
      outbox: optional(port<NonNullable<Options['outbox']>>(['enqueue'])),
      deadLetters: oneOf(['outbox', 'stall'], defaults.deadLetters),
      deadLetterTopic: callback<(topic: string) => string>((topic) => `${topic}.dead`),
      eventId: callback<(record: ReceivedRecord) => string | undefined>(eventIdHeader),
      defaultContentType: text({ default: defaults.defaultContentType }),
      maxAttempts: integer({ default: defaults.maxAttempts, min: 1 }),
      retryBackoff: custom<NonNullable<Options['retryBackoff']>>(backoffComplaint, defaults.retryBackoff),
      maxContentions: integer({ default: defaults.maxContentions }),
      batchSize: integer({ default: defaults.batchSize, min: 1, max: 10_000 }),
      prepareConcurrency: integer({ default: defaults.prepareConcurrency, min: 1, max: 1_000 }),
      prepareTimeoutMs: integer({ default: defaults.prepareTimeoutMs, min: 1 }),
      handlerTimeoutMs: integer({ default: defaults.handlerTimeoutMs, min: 1 }),
      stopTimeoutMs: optional(integer({ min: 0 })),
      schema: schemaName(),
      logger: port<Logger>(['debug', 'info', 'warn', 'error'], silentLogger),
      clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
      random: port<Random>(['next'], systemRandom),
      signals: optional(stopSignals),
    },
    given,
  );
  if (parsed.outbox === undefined && parsed.deadLetters === 'outbox') {
    throw new ReplaysafeError('RS_OPTION_REQUIRED', {
      detail: `${DOOR}: outbox is required, since dead letters are written through it; deadLetters: 'stall' does without and lets a partition wait at an event that cannot be applied`,
    });
  }
  return {
    ...parsed,
    group: parsed.group ?? parsed.consumer,
    retryBackoff: { ...defaults.retryBackoff, ...parsed.retryBackoff },
    stopTimeoutMs: parsed.stopTimeoutMs ?? parsed.signals?.budgetMs ?? defaults.stopTimeoutMs,
  };
}

export type ParsedConsumerOptions<Tx, Prepared> = ReturnType<typeof parseConsumerOptions<Tx, Prepared>>;

function topicsComplaint(given: unknown): string | undefined {
  const topics: readonly unknown[] = Array.isArray(given) ? given : [];
  const usable = topics.length > 0 && topics.every((topic) => typeof topic === 'string' && topic !== '');
  return usable ? undefined : 'must be a list of at least one topic';
}

function backoffComplaint(given: unknown): string | undefined {
  const usable =
    typeof given === 'object' &&
    given !== null &&
    Object.entries(given).every(
      ([name, value]) => (name === 'baseMs' || name === 'capMs') && Number.isInteger(value) && (value as number) >= 0,
    );
  return usable ? undefined : 'must hold whole milliseconds in baseMs and capMs, and nothing else';
}
