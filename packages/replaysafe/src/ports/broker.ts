/** The wire format: every header the library writes or reads. */
export const HEADERS = {
  eventId: 'event-id',
  eventType: 'event-type',
  contentType: 'content-type',
  aggregateType: 'aggregate-type',
  traceparent: 'traceparent',
  /** The relay's claim; a diagnostic, never a reason to drop an event. */
  claimToken: 'rs-claim-token',
  attempt: 'rs-attempt',
  notBefore: 'rs-not-before',
  /** Where a dead letter or a retry copy came from: `topic/partition/offset`. */
  origin: 'rs-origin',
  originEventId: 'rs-origin-event-id',
  /** The key of the origin in base64url, where the record's own cannot be it: the outbox keeps keys as text. */
  originKey: 'rs-origin-key',
  consumer: 'rs-consumer',
  errorCode: 'rs-error-code',
  error: 'rs-error',
} as const;

export interface BrokerRecord {
  readonly topic: string;
  readonly key: string | null;
  readonly value: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * What became of one record.
 * - `stored`: the broker has it.
 * - `rejected`: it can never be accepted as it is.
 * - `topic-refused`: its topic is unknown or forbidden; may heal, for it may just be being rolled out.
 * - `retriable`: it was certainly not stored, and may be accepted later.
 * - `unknown`: it may be stored (time-out, lost connection).
 */
export type PublishOutcome =
  | { readonly status: 'stored' }
  | { readonly status: 'rejected' | 'topic-refused' | 'retriable' | 'unknown'; readonly reason: string };

/** Sends records to a broker. Acknowledged means written by all in-sync replicas (acks all). */
export interface Publisher {
  /** One outcome for each record, in the records' order; never rejects for a record. Gives up when `deadline` aborts. */
  publish(records: readonly BrokerRecord[], deadline: AbortSignal): Promise<readonly PublishOutcome[]>;
  /** Waits for what is in flight, then closes; gives up when `deadline` aborts. */
  stop(deadline: AbortSignal): Promise<void>;
}

export interface ReceivedRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  /** A repeated header keeps its last value. */
  readonly headers: Readonly<Record<string, Uint8Array>>;
  /** Milliseconds since the epoch, as the broker stored it. */
  readonly timestamp: number;
}

/** Records of one partition, offsets ascending. At most one batch of a partition is outstanding. */
export interface ReceivedBatch {
  readonly topic: string;
  readonly partition: number;
  readonly records: readonly ReceivedRecord[];
  /** Aborts when the partition is lost: abort the work and commit nothing. */
  readonly lost: AbortSignal;
  /** Aborts when the partition is about to be given up or the subscriber stops: end at the next safe place. */
  readonly revoking: AbortSignal;
  /**
   * Commits `nextOffset`, the offset after the last record whose effect is durable. Decided here, without asking the broker: one
   * that would go backwards is `committed` already, and one for a partition that is not ours any more is `fenced`. Never rejects.
   */
  commit(nextOffset: bigint): Promise<CommitOutcome>;
}

export type CommitOutcome = 'committed' | 'fenced' | 'retriable';

export interface SubscribeOptions {
  /** Consumer group. */
  readonly group: string;
  readonly topics: readonly string[];
  /** Where a group without an offset begins. Default `earliest`. */
  readonly start?: 'earliest' | 'latest';
  /** Most records in one batch. */
  readonly maxBatch: number;
  /**
   * Handles one batch. When it resolves, the next batch of the partition starts behind its last record, or, where it ended early
   * because of `revoking` or `lost`, behind the last committed one. When it rejects, the batch is delivered again after a
   * back-off, perhaps with further records behind.
   */
  readonly onBatch: (batch: ReceivedBatch) => Promise<void>;
}

export interface Subscriber {
  /**
   * Resolves when the group has been joined, or when `stop` ended the attempt. A broker that cannot be reached is tried again and
   * again; what waiting cannot heal rejects.
   * @throws RS_BROKER_UNAVAILABLE (access refused), RS_BROKER_TOPIC_MISSING, RS_BROKER_UNSAFE_SETTING, RS_OPTION_INVALID
   */
  start(options: SubscribeOptions): Promise<void>;
  /** Stops intake, waits for running batches, leaves the group; gives up when `deadline` aborts. */
  stop(deadline: AbortSignal): Promise<void>;
  health(): SubscriberHealth;
}

export interface SubscriberHealth {
  readonly state: 'stopped' | 'joining' | 'joined';
  /** Milliseconds since the last answered heartbeat, or undefined before the first. */
  readonly sinceHeartbeatMs: number | undefined;
  /** Partitions that stand still until somebody decides, each with its reason; absent when there is none. */
  readonly halted?: readonly string[];
}
