import kafkajs from 'kafkajs';
import type { BookReader, Progress } from './books.js';

/** How many records of the topic the group has not committed yet. */
export class GroupLag {
  readonly #admin: kafkajs.Admin;
  readonly #topic: string;
  readonly #group: string;

  constructor(brokers: string, topic: string, group: string) {
    this.#admin = new kafkajs.Kafka({
      clientId: 'shop-demo',
      brokers: brokers.split(','),
      logLevel: kafkajs.logLevel.NOTHING,
    }).admin();
    this.#topic = topic;
    this.#group = group;
  }

  async read(): Promise<number> {
    await this.#admin.connect();
    const [ends, committed] = await Promise.all([
      this.#admin.fetchTopicOffsets(this.#topic),
      this.#admin.fetchOffsets({ groupId: this.#group, topics: [this.#topic] }),
    ]);
    const positions = new Map(committed[0]?.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
    return ends.reduce((sum, end) => {
      // A partition nobody has committed yet has -1.
      const position = Math.max(positions.get(end.partition) ?? 0, Number(end.low));
      return sum + Math.max(0, Number(end.high) - position);
    }, 0);
  }

  /** For a broker that others use: leaves nothing behind. */
  async deleteTopic(): Promise<void> {
    await this.#admin.connect();
    await this.#admin.deleteGroups([this.#group]).catch(() => undefined);
    await this.#admin.deleteTopics({ topics: [this.#topic, `${this.#topic}.dead`] }).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#admin.disconnect();
  }
}

export interface PipelineLimits {
  /** When to give up, in milliseconds. */
  readonly withinMs: number;
  /**
   * Nothing has moved for so long: what is missing then will not come. Longer than the group may stand still after the
   * death of a member.
   */
  readonly quietMs: number;
}

export type PipelineEnd = 'empty' | 'quiet' | 'timed-out';

const LOOK_EVERY_MS = 250;

/**
 * Waits until nothing is under way: no open row in the outbox, no open task, no record ahead of the group, every order charged. Where an order
 * is lost the last never comes true, so it ends also when nothing moves any more.
 */
export async function untilPipelineEmpty(
  reader: BookReader,
  lag: GroupLag,
  limits: PipelineLimits,
  look: (progress: Progress) => void,
  sleep: (ms: number) => Promise<void>,
): Promise<PipelineEnd> {
  const until = performance.now() + limits.withinMs;
  let last = '';
  let movedAt = performance.now();
  while (performance.now() < until) {
    const [progress, behind] = await Promise.all([reader.progress(), lag.read()]);
    look(progress);
    const done = progress.open === 0 && progress.tasksOpen === 0 && behind === 0;
    if (done && progress.ordersCharged === progress.orders) return 'empty';
    const now = JSON.stringify([progress, behind]);
    if (now !== last) {
      last = now;
      movedAt = performance.now();
    }
    if (done && performance.now() - movedAt >= limits.quietMs) return 'quiet';
    await sleep(LOOK_EVERY_MS);
  }
  return 'timed-out';
}
