/**
 * The part of kafkajs 2.2.4 that is called, as structural types: the library never imports it, the application hands it over.
 */
export interface KafkajsClient {
  producer(config: {
    readonly idempotent: boolean;
    readonly maxInFlightRequests: number;
    readonly allowAutoTopicCreation: boolean;
    readonly createPartitioner: () => KafkajsPartitioner;
    readonly retry: KafkajsRetry;
  }): KafkajsProducer;
  consumer(config: {
    readonly groupId: string;
    readonly sessionTimeout: number;
    readonly rebalanceTimeout: number;
    readonly heartbeatInterval: number;
    readonly maxBytesPerPartition: number;
    readonly maxWaitTimeInMs: number;
    readonly allowAutoTopicCreation: boolean;
    readonly readUncommitted: boolean;
    readonly retry: KafkajsRetry;
  }): KafkajsConsumer;
  admin(config: { readonly retry: KafkajsRetry }): KafkajsAdmin;
}

/**
 * Either a `Kafka` instance, or a function that makes one with the client id it is given: then the broker's group listings
 * show who is who, and each connection has state of its own.
 */
export type KafkajsSource = KafkajsClient | ((clientId: string) => KafkajsClient);

export interface KafkajsRetry {
  readonly retries?: number;
  readonly initialRetryTime: number;
  readonly maxRetryTime: number;
  readonly multiplier: number;
  readonly restartOnFailure?: (error: Error) => Promise<boolean>;
}

/** Chooses the partition of a message, as kafkajs's `createPartitioner` returns it. */
export type KafkajsPartitioner = (choice: {
  topic: string;
  partitionMetadata: { partitionId: number; leader: number }[];
  message: KafkajsMessage;
}) => number;

export interface KafkajsMessage {
  key?: Buffer | string | null;
  value: Buffer | string | null;
  headers?: KafkajsHeaders;
  partition?: number;
}

export type KafkajsHeaders = Record<string, Buffer | string | (Buffer | string)[] | undefined>;

export interface KafkajsProducer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  send(request: { topic: string; acks: number; timeout: number; messages: KafkajsMessage[] }): Promise<unknown>;
}

export interface KafkajsConsumer {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  subscribe(subscription: { topics: string[]; fromBeginning: boolean }): Promise<void>;
  run(config: {
    autoCommit: boolean;
    eachBatchAutoResolve: boolean;
    partitionsConsumedConcurrently: number;
    eachBatch: (payload: KafkajsEachBatch) => Promise<void>;
  }): Promise<void>;
  commitOffsets(offsets: { topic: string; partition: number; offset: string }[]): Promise<void>;
  seek(position: { topic: string; partition: number; offset: string }): void;
  pause(topics: { topic: string; partitions: number[] }[]): void;
  resume(topics: { topic: string; partitions: number[] }[]): void;
  on(event: string, listener: (event: { payload: unknown }) => void): unknown;
}

export interface KafkajsEachBatch {
  readonly batch: {
    readonly topic: string;
    readonly partition: number;
    readonly messages: readonly KafkajsReceivedMessage[];
    /** What was asked of the broker; an inner field, and the only trace of a jump. */
    readonly fetchedOffset?: string;
    lastOffset(): string;
  };
  resolveOffset(offset: string): void;
  heartbeat(): Promise<void>;
  commitOffsetsIfNecessary(offsets: {
    topics: { topic: string; partitions: { partition: number; offset: string }[] }[];
  }): Promise<void>;
  isRunning(): boolean;
  isStale(): boolean;
}

export interface KafkajsReceivedMessage {
  readonly key: Buffer | null;
  readonly value: Buffer | null;
  readonly timestamp: string;
  readonly offset: string;
  readonly headers?: KafkajsHeaders;
}

export interface KafkajsAdmin {
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  fetchTopicMetadata(request: { topics: string[] }): Promise<unknown>;
  fetchOffsets(request: {
    groupId: string;
    topics: string[];
  }): Promise<readonly { topic: string; partitions: readonly { partition: number; offset: string }[] }[]>;
  fetchTopicOffsets(topic: string): Promise<readonly { partition: number; high: string; low: string }[]>;
  describeGroups(
    groups: string[],
  ): Promise<{ readonly groups: readonly { readonly members: readonly { readonly clientId: string }[] }[] }>;
}
