import type { CommitOutcome, ReceivedBatch, ReceivedRecord } from '../../ports/broker.js';
import { deadlineAfter, type Clock } from '../../ports/clock.js';
import { describeFailure, isFenced } from './kafkajs-failure.js';
import { until } from './until.js';

/** Writes one offset of the lease's partition to the group. */
export type WriteOffset = (nextOffset: bigint) => Promise<void>;

/**
 * The right to work on one partition, from one assignment to its end. Brokers check the member of a commit and its generation,
 * never whether the partition is its own nor whether the offset goes backwards, so that a zombie can rewind a group: both are
 * checked here.
 */
export class PartitionLease {
  readonly topic: string;
  readonly partition: number;
  readonly #lost = new AbortController();
  readonly #revoking = new AbortController();
  readonly #clock: Clock;
  readonly #commitTimeoutMs: number;
  #turn: Promise<unknown> = Promise.resolve();
  #committed: bigint | undefined;
  #attempted: bigint | undefined;

  /** The offset that is delivered next; undefined until the start is known. */
  position: bigint | undefined;
  /** How often in a row the batch at the head was refused by its handler. */
  failures = 0;
  /** Whether kafkajs reads elsewhere by now than at {@link position}. */
  displaced = false;
  /** Why the partition stands still, where it must not go on by itself. */
  halted: string | undefined;

  constructor(topic: string, partition: number, settings: { readonly clock: Clock; readonly commitTimeoutMs: number }) {
    this.topic = topic;
    this.partition = partition;
    this.#clock = settings.clock;
    this.#commitTimeoutMs = settings.commitTimeoutMs;
  }

  /** Whether new work may begin. */
  isOpen(): boolean {
    return !this.#lost.signal.aborted && !this.#revoking.signal.aborted;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  begin(position: bigint, committed: bigint | undefined): void {
    this.position = position;
    this.#committed = committed;
    this.displaced = false;
    this.halted = undefined;
  }

  /** The group's offset was overwritten: the next commit is written, whatever was before. */
  forgetCommitted(): void {
    this.displaced = true;
    this.#committed = undefined;
    this.#attempted = undefined;
  }

  revoke(reason: string): void {
    this.#revoking.abort(new Error(reason));
  }

  lose(reason: string): void {
    this.revoke(reason);
    this.#lost.abort(new Error(reason));
  }

  /** A lease for the same assignment, where its loss was only feared. */
  renewed(): PartitionLease {
    const lease = new PartitionLease(this.topic, this.partition, {
      clock: this.#clock,
      commitTimeoutMs: this.#commitTimeoutMs,
    });
    lease.position = this.position;
    lease.#committed = this.#committed;
    lease.#attempted = this.#attempted;
    lease.failures = this.failures;
    lease.displaced = this.displaced;
    lease.halted = this.halted;
    return lease;
  }

  batch(records: readonly ReceivedRecord[], write: WriteOffset): ReceivedBatch {
    return {
      topic: this.topic,
      partition: this.partition,
      records,
      lost: this.#lost.signal,
      revoking: this.#revoking.signal,
      commit: (nextOffset) => this.commit(nextOffset, write),
    };
  }

  /** One at a time, so that two commits cannot overtake each other on the way. Never rejects. */
  commit(nextOffset: bigint, write: WriteOffset): Promise<CommitOutcome> {
    const outcome = this.#turn.then(() => this.#commit(nextOffset, write));
    this.#turn = outcome;
    return outcome;
  }

  async #commit(nextOffset: bigint, write: WriteOffset): Promise<CommitOutcome> {
    if (this.#lost.signal.aborted) return 'fenced';
    if (this.#committed !== undefined && nextOffset <= this.#committed) return 'committed';
    // A larger one may have arrived although its answer did not.
    if (this.#attempted !== undefined && nextOffset < this.#attempted) return 'retriable';
    this.#attempted = nextOffset;
    const limit = deadlineAfter(this.#clock, this.#commitTimeoutMs);
    try {
      const written = await until(write(nextOffset), limit.signal);
      if (written.aborted) return 'retriable';
      this.#committed = nextOffset;
      return 'committed';
    } catch (error) {
      const failure = describeFailure(error);
      if (!isFenced(failure)) return 'retriable';
      this.lose(failure.reason);
      return 'fenced';
    } finally {
      limit.dispose();
    }
  }
}

export const partitionId = (topic: string, partition: number): string => `${topic}/${String(partition)}`;
