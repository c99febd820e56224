import type { SubscribeOptions } from '../../ports/broker.js';
import { pause, type Clock } from '../../ports/clock.js';
import type { Logger } from '../../ports/logger.js';
import type { Random } from '../../ports/random.js';
import { backoffDelay } from '../../retry/backoff.js';
import { describeFailure } from './kafkajs-failure.js';
import { partitionId, PartitionLease } from './kafkajs-lease.js';
import type { CommitWatch } from './kafkajs-commit-watch.js';
import { decideStart, readPositions, type PartitionPositions } from './kafkajs-positions.js';
import type { KafkajsAdmin, KafkajsConsumer } from './kafkajs-types.js';

export interface AssignmentSettings {
  readonly commitTimeoutMs: number;
  readonly backoff: { readonly baseMs: number; readonly capMs: number };
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
}

/** A new leader may know less of the newest offset for a moment: only the third look in a row counts. */
const LOOKS = 3;

/** What one generation of the group gave us: a lease for each partition, paused until its start is known to be right. */
export class Assignment {
  readonly #leases: Map<string, PartitionLease>;
  readonly #consumer: KafkajsConsumer;
  readonly #admin: KafkajsAdmin;
  readonly #subscription: SubscribeOptions;
  readonly #settings: AssignmentSettings;
  readonly #commits: CommitWatch;
  readonly #ended = new AbortController();

  constructor(
    assigned: Readonly<Record<string, readonly number[]>>,
    consumer: KafkajsConsumer,
    admin: KafkajsAdmin,
    subscription: SubscribeOptions,
    settings: AssignmentSettings,
    commits: CommitWatch,
  ) {
    this.#commits = commits;
    this.#consumer = consumer;
    this.#admin = admin;
    this.#subscription = subscription;
    this.#settings = settings;
    this.#leases = new Map();
    for (const [topic, partitions] of Object.entries(assigned)) {
      for (const partition of partitions) {
        this.#leases.set(partitionId(topic, partition), new PartitionLease(topic, partition, settings));
      }
    }
  }

  /** Partitions that stand still until somebody decides, with the reason. */
  get halted(): string[] {
    return [...this.#leases].flatMap(([id, { halted }]) => (halted === undefined ? [] : [`${id}: ${halted}`]));
  }

  lease(topic: string, partition: number): PartitionLease | undefined {
    return this.#leases.get(partitionId(topic, partition));
  }

  /**
   * Pauses all and looks where they should be: before their first fetch, and when kafkajs has written an offset that nobody asked for,
   * as it does when the broker calls one out of range. It reads elsewhere afterwards.
   */
  check(): void {
    for (const lease of this.#leases.values()) this.#pause(lease);
    void this.#start([...this.#leases.keys()]);
  }

  revoke(reason: string): void {
    for (const lease of this.#leases.values()) lease.revoke(reason);
  }

  lose(reason: string): void {
    for (const lease of this.#leases.values()) lease.lose(reason);
  }

  end(reason: string): void {
    this.lose(reason);
    this.#ended.abort();
  }

  /** The group still counts us in: what was feared lost goes on, under new leases. */
  renew(): void {
    for (const [id, lease] of this.#leases) if (!lease.isOpen()) this.#leases.set(id, lease.renewed());
  }

  /** Leaves the others of the broker their turn while one partition waits. */
  retryLater(lease: PartitionLease, error: unknown): void {
    const { clock, random, backoff, logger } = this.#settings;
    lease.failures++;
    const delayMs = backoffDelay({ attempt: lease.failures, ...backoff, random });
    const { topic, partition, failures } = lease;
    logger.warn({ topic, partition, failures, delayMs, error }, 'a batch was not handled; it is delivered again');
    this.#pause(lease);
    void pause(clock, delayMs, this.#ended.signal).then(() => {
      this.#resume(topic, partition);
    });
  }

  /**
   * Whether kafkajs reads elsewhere than behind what was delivered last. It does so when the broker says OFFSET_OUT_OF_RANGE, and
   * overwrites the group's offset; a fetch that starts later is otherwise the sign of control records only.
   */
  async jumped(lease: PartitionLease, fetchedOffset: bigint): Promise<boolean> {
    const { topic, partition, position } = lease;
    if (position === undefined || fetchedOffset === position) return false;
    if (fetchedOffset < position) return true;
    const bounds = await this.#admin.fetchTopicOffsets(topic);
    const low = bounds.find((bound) => bound.partition === partition)?.low;
    return low === undefined || BigInt(low) > position;
  }

  /** Stops a partition at its position, and waits for a broker that holds it again. */
  halt(lease: PartitionLease): void {
    lease.forgetCommitted();
    this.#pause(lease);
    void this.#start([partitionId(lease.topic, lease.partition)]);
  }

  async #start(ids: readonly string[]): Promise<void> {
    const { clock, logger, random, backoff } = this.#settings;
    const { group } = this.#subscription;
    let waiting = ids;
    for (let look = 1; waiting.length > 0 && !this.#ended.signal.aborted; look++) {
      if (look > 1) await pause(clock, backoffDelay({ attempt: look - 1, ...backoff, random }), this.#ended.signal);
      try {
        const topics = new Set(waiting.flatMap((id) => this.#leases.get(id)?.topic ?? []));
        const positions = await readPositions(this.#admin, group, [...topics]);
        waiting = waiting.filter((id) => !this.#ended.signal.aborted && !this.#startOne(id, positions.get(id), look));
      } catch (error) {
        logger.warn({ group, reason: describeFailure(error).reason }, 'the offsets of the group cannot be read yet');
      }
    }
  }

  /** Whether the partition runs. */
  #startOne(id: string, positions: PartitionPositions | undefined, look: number): boolean {
    const lease = this.#leases.get(id);
    if (!lease) return true;
    if (!positions) return false;
    const { topic, partition, position } = lease;
    const isOverwritten = position !== undefined && positions.committed === undefined;
    if (isOverwritten) lease.forgetCommitted();
    const start = decideStart(positions, this.#subscription.start ?? 'earliest', position);
    if (start.kind === 'out-of-range') {
      if (isOverwritten) void this.#pin(lease, start.wanted);
      this.#sayOutOfRange(id, lease, positions, start.wanted, look);
      return false;
    }
    if (position === undefined || lease.displaced) {
      lease.begin(start.at, start.committed);
      this.#consumer.seek({ topic, partition, offset: String(start.at) });
      if (start.committed === undefined) void this.#pin(lease, start.at);
    }
    this.#resume(topic, partition);
    return true;
  }

  /** A group without an offset would start elsewhere next time, behind records that arrived or expired in between. */
  async #pin(lease: PartitionLease, at: bigint): Promise<void> {
    const { topic, partition } = lease;
    await lease.commit(at, (offset) =>
      this.#commits.own(() => this.#consumer.commitOffsets([{ topic, partition, offset: String(offset) }])),
    );
  }

  #sayOutOfRange(id: string, lease: PartitionLease, positions: PartitionPositions, wanted: bigint, look: number): void {
    if (look < LOOKS || lease.halted !== undefined) return;
    const { low, high } = positions;
    lease.halted = `RS_BROKER_OFFSET_OUT_OF_RANGE: offset ${wanted} is not in ${low} to ${high}`;
    this.#settings.logger.error(
      { code: 'RS_BROKER_OFFSET_OUT_OF_RANGE', partition: id, wanted, low, high },
      'a partition is halted: the offset to go on from is not kept any more; set the offset of the group by hand',
    );
  }

  #pause({ topic, partition }: PartitionLease): void {
    this.#consumer.pause([{ topic, partitions: [partition] }]);
  }

  #resume(topic: string, partition: number): void {
    if (!this.#ended.signal.aborted) this.#consumer.resume([{ topic, partitions: [partition] }]);
  }
}
