/** An event as a producer writes it into the outbox. */
export interface OutboxEvent {
  /** The event id that consumers dedup by: a UUID. Made by the database (version 7) where it is not given. */
  readonly id?: string;
  readonly topic: string;
  /** Becomes the `event-type` header. */
  readonly type: string;
  readonly aggregateType?: string;
  /** The Kafka key and the key of the order promise; none means no order. */
  readonly key?: string | null;
  /** Bytes are sent as they are, null as a record without a value. Anything else is written as JSON. */
  readonly payload: unknown;
  /** `application/json` unless the payload is bytes, then `application/octet-stream`; none for null. */
  readonly contentType?: string;
  /** Further headers, e.g. `traceparent`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Not published before this moment. */
  readonly availableAt?: Date;
}

/**
 * Writes events inside a transaction that the caller has open, in one statement.
 * @throws RS_OUTBOX_NO_TRANSACTION, RS_OUTBOX_EVENT_INVALID
 */
export type Enqueue<Tx> = (
  tx: Tx,
  events: OutboxEvent | readonly OutboxEvent[],
) => Promise<readonly { readonly id: string }[]>;
