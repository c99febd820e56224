import type { Publisher, ReceivedRecord, Subscriber } from '../../ports/broker.js';

/** What can be done to the way between the client under test and the broker. */
export interface BrokerFaults {
  /** Breaks every connection and each new one: the broker is down. */
  down(): void;
  /** Lets requests reach the broker and holds its answers. */
  withholdReplies(): void;
  /** Ends every fault; answers that were held arrive. */
  resume(): void;
}

/** A real broker, looked at through a client of its own, and the adapter under test. */
export interface BrokerHarness {
  readonly faults: BrokerFaults;
  /** Session time-out of the subscribers that are opened, in milliseconds. */
  readonly sessionTimeoutMs: number;
  /** A new topic of a name never used before. */
  createTopic(options?: { readonly partitions?: number; readonly maxMessageBytes?: number }): Promise<string>;
  /** All records, each partition in its order. */
  read(topic: string): Promise<readonly ReceivedRecord[]>;
  /** Appends one record for each value to a partition. */
  write(topic: string, partition: number, values: readonly string[]): Promise<void>;
  /** Deletes all records of a partition before an offset. */
  deleteBefore(topic: string, partition: number, offset: bigint): Promise<void>;
  /** The group's next offset, or undefined. */
  committed(group: string, topic: string, partition: number): Promise<bigint | undefined>;
  memberCount(group: string): Promise<number>;
  /** A publisher on the disturbed way. */
  openPublisher(): Publisher;
  /** A subscriber; on the disturbed way where that is asked for. */
  openSubscriber(options?: { readonly disturbed?: boolean }): Subscriber;
}

/** The size above which the publishers that are opened reject a record unsent. */
export const HARNESS_MAX_RECORD_BYTES = 200_000;
