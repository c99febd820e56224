import type { SubscribeOptions } from '../../ports/broker.js';
import { deadlineAfter } from '../../ports/clock.js';
import { Assignment, type AssignmentSettings } from './kafkajs-assignment.js';
import { CommitWatch } from './kafkajs-commit-watch.js';
import { describeFailure, isFenced, isRebalance } from './kafkajs-failure.js';
import { Heartbeats } from './kafkajs-heartbeat.js';
import type { PartitionLease, WriteOffset } from './kafkajs-lease.js';
import { decodeMessage } from './kafkajs-record.js';
import type { KafkajsAdmin, KafkajsClient, KafkajsConsumer, KafkajsEachBatch } from './kafkajs-types.js';
import { until } from './until.js';

export interface MembershipSettings extends AssignmentSettings {
  readonly sessionTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly rebalanceTimeoutMs: number;
  readonly fetchWaitMs: number;
  readonly maxBytesPerPartition: number;
  readonly partitionsInParallel: number;
}

/**
 * One kafkajs consumer from its connection to its end. One that crashed is not started again but replaced by the subscriber.
 * kafkajs has no hook for a revocation, but it joins anew only after every running handler has returned: handlers that follow
 * `revoking` end and commit first.
 */
export class Membership {
  readonly #settings: MembershipSettings;
  readonly #subscription: SubscribeOptions;
  readonly #consumer: KafkajsConsumer;
  readonly #admin: KafkajsAdmin;
  readonly #heartbeats: Heartbeats;
  readonly #commits = new CommitWatch(() => {
    this.#assignment?.check();
  });
  readonly #over = new AbortController();
  readonly #handling = new Set<Promise<void>>();
  #assignment: Assignment | undefined;
  #joined = false;
  #stopping = false;
  #opening: Promise<unknown> = Promise.resolve();
  #running: Promise<void> | undefined;

  constructor(kafka: KafkajsClient, admin: KafkajsAdmin, subscription: SubscribeOptions, settings: MembershipSettings) {
    this.#settings = settings;
    this.#subscription = subscription;
    this.#admin = admin;
    this.#consumer = kafka.consumer({
      groupId: subscription.group,
      sessionTimeout: settings.sessionTimeoutMs,
      rebalanceTimeout: settings.rebalanceTimeoutMs,
      heartbeatInterval: settings.heartbeatMs,
      maxBytesPerPartition: settings.maxBytesPerPartition,
      // Between two fetches is where an idle member sends its heartbeat.
      maxWaitTimeInMs: Math.min(settings.fetchWaitMs, settings.heartbeatMs),
      allowAutoTopicCreation: false,
      readUncommitted: false,
      retry: {
        retries: 5,
        initialRetryTime: 100,
        maxRetryTime: 1_000,
        multiplier: 2,
        restartOnFailure: () => Promise.resolve(false),
      },
    });
    this.#heartbeats = new Heartbeats({
      ...settings,
      onError: (error) => {
        this.#heartbeatFailed(error);
      },
      onSilence: () => {
        this.lose('no heartbeat was answered for a whole session');
      },
    });
    this.#listen();
  }

  get joined(): boolean {
    return this.#joined;
  }

  get sinceHeartbeatMs(): number | undefined {
    return this.#heartbeats.sinceAnswerMs;
  }

  get halted(): string[] {
    return this.#assignment?.halted ?? [];
  }

  /** Aborts, with the reason, when the consumer has ended, by itself or by {@link close}. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Joins the group, or returns early when `stopping` aborts. Rejects when the broker cannot be reached or refuses. */
  async join(stopping: AbortSignal): Promise<void> {
    const topics = [...this.#subscription.topics];
    const fromBeginning = this.#subscription.start !== 'latest';
    for (const step of [() => this.#consumer.connect(), () => this.#consumer.subscribe({ topics, fromBeginning })]) {
      if (stopping.aborted) return;
      this.#opening = step();
      if ((await until(this.#opening, stopping)).aborted) return;
    }
    // From here on there may be a member in the group: a stop waits for this, or the consumer would come alive behind it.
    this.#running = this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: this.#settings.partitionsInParallel,
      eachBatch: (payload) => this.#receive(payload),
    });
    await this.#running;
    this.#watch();
  }

  /** Takes nothing new and tells running handlers to end at their next safe place. */
  revoke(): void {
    this.#stopping = true;
    this.#assignment?.revoke('the subscriber stops');
  }

  lose(reason: string): void {
    this.#assignment?.lose(reason);
  }

  /** Waits for running handlers, whose commits still count, then leaves the group. */
  async close(): Promise<void> {
    this.revoke();
    const disconnect = (): Promise<void> => this.#consumer.disconnect();
    if (this.#running) {
      await this.#running.catch(() => undefined);
      await disconnect().catch(() => undefined);
    } else {
      // Against a broker that is down this takes as long as kafkajs tries; there is no member to wait for.
      void this.#opening.then(disconnect, disconnect).catch(() => undefined);
    }
    this.#end(new Error('the subscriber has left the group'));
    await this.handlersEnded();
  }

  async handlersEnded(): Promise<void> {
    while (this.#handling.size > 0) await Promise.allSettled(this.#handling);
  }

  #listen(): void {
    this.#consumer.on('consumer.group_join', ({ payload }) => {
      this.#assignment?.end('the group was joined anew');
      const assigned = (payload as { memberAssignment: Record<string, number[]> }).memberAssignment;
      this.#assignment = new Assignment(
        assigned,
        this.#consumer,
        this.#admin,
        this.#subscription,
        this.#settings,
        this.#commits,
      );
      if (this.#stopping) this.revoke();
      this.#joined = true;
      this.#heartbeats.answered();
      this.#assignment.check();
    });
    this.#consumer.on('consumer.heartbeat', () => {
      this.#heartbeats.answered();
      if (this.#joined && !this.#stopping) this.#assignment?.renew();
    });
    this.#consumer.on('consumer.network.request', ({ payload }) => {
      if ((payload as { apiName?: string }).apiName === 'OffsetCommit') this.#commits.answered();
    });
    this.#consumer.on('consumer.rebalancing', () => {
      this.#joined = false;
      this.#assignment?.end('the group is rebalancing');
    });
    this.#consumer.on('consumer.crash', ({ payload }) => {
      this.#end((payload as { error: Error }).error);
    });
  }

  #end(reason: Error): void {
    this.#joined = false;
    this.#assignment?.end(reason.message);
    this.#over.abort(reason);
  }

  /** kafkajs can fall silent without telling of a crash: an error while it cleans up after one. */
  #watch(): void {
    const { clock, sessionTimeoutMs, rebalanceTimeoutMs } = this.#settings;
    if (this.#over.signal.aborted) return;
    const look = deadlineAfter(clock, sessionTimeoutMs, this.#over.signal);
    look.signal.addEventListener('abort', () => {
      look.dispose();
      if ((this.sinceHeartbeatMs ?? 0) > 2 * sessionTimeoutMs + rebalanceTimeoutMs) {
        this.#end(new Error('no heartbeat was answered for longer than a session and a rebalance'));
      }
      this.#watch();
    });
  }

  #heartbeatFailed(error: unknown): void {
    const failure = describeFailure(error);
    this.#settings.logger.debug({ reason: failure.reason }, 'a heartbeat failed');
    if (isRebalance(failure)) this.#assignment?.revoke(failure.reason);
    else if (isFenced(failure)) this.lose(failure.reason);
  }

  /** Never rejects: kafkajs would take that for a crash. What is not resolved is fetched again. */
  async #receive(payload: KafkajsEachBatch): Promise<void> {
    const { topic, partition } = payload.batch;
    const handled = this.#heartbeats.during(
      () => payload.heartbeat(),
      async () => {
        const assignment = this.#assignment;
        const lease = assignment?.lease(topic, partition);
        if (!assignment || !lease?.isOpen()) return;
        if (await this.#isElsewhere(assignment, lease, payload)) return;
        await this.#deliver(assignment, lease, payload);
      },
    );
    this.#handling.add(handled);
    try {
      await handled;
    } finally {
      this.#handling.delete(handled);
    }
  }

  async #isElsewhere(assignment: Assignment, lease: PartitionLease, payload: KafkajsEachBatch): Promise<boolean> {
    const { fetchedOffset } = payload.batch;
    if (fetchedOffset === undefined) return false;
    try {
      if (!(await assignment.jumped(lease, BigInt(fetchedOffset)))) return false;
      assignment.halt(lease);
    } catch (error) {
      assignment.retryLater(lease, error);
    }
    return true;
  }

  async #deliver(assignment: Assignment, lease: PartitionLease, payload: KafkajsEachBatch): Promise<void> {
    const { topic, partition, messages } = payload.batch;
    const { maxBatch, onBatch } = this.#subscription;
    for (let from = 0; from < messages.length; from += maxBatch) {
      if (!lease.isOpen() || !payload.isRunning() || payload.isStale()) return;
      const part = messages.slice(from, from + maxBatch);
      const records = part.map((message) => decodeMessage(topic, partition, message));
      try {
        await onBatch(lease.batch(records, this.#writer(lease, payload)));
      } catch (error) {
        if (lease.isOpen()) assignment.retryLater(lease, error);
        return;
      }
      // A handler that was told to end early may have left records behind.
      if (!lease.isOpen()) return;
      lease.failures = 0;
      const last = part.at(-1)?.offset ?? payload.batch.lastOffset();
      payload.resolveOffset(last);
      const isWhole = from + part.length === messages.length;
      lease.position = BigInt(isWhole ? payload.batch.lastOffset() : last) + 1n;
    }
  }

  /** The commit that kafkajs hands to a handler: its other one does nothing, silently, once the consumer is stopping. */
  #writer({ topic, partition }: PartitionLease, payload: KafkajsEachBatch): WriteOffset {
    return (nextOffset) =>
      this.#commits.own(() =>
        payload.commitOffsetsIfNecessary({
          topics: [{ topic, partitions: [{ partition, offset: String(nextOffset) }] }],
        }),
      );
  }
}
