import {
  HEADERS,
  type CommitOutcome,
  type ReceivedBatch,
  type ReceivedRecord,
  type SubscribeOptions,
  type Subscriber,
  type SubscriberHealth,
} from '../../src/ports/broker.js';

export interface Sent {
  readonly topic?: string;
  readonly partition?: number;
  readonly id?: string | undefined;
  readonly type?: string;
  readonly key?: string | Uint8Array | null;
  readonly payload?: unknown;
  /** Instead of `payload`: the bytes as they are. */
  readonly value?: Uint8Array | null;
  readonly headers?: Readonly<Record<string, string | Uint8Array>>;
}

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const bytes = (value: string | Uint8Array): Uint8Array => (typeof value === 'string' ? encode(value) : value);

/** A broker's log and its committed offsets, without a broker: what is delivered again, and when, is the test's choice. */
export class InProcessBroker {
  readonly log = new Map<string, ReceivedRecord[]>();
  readonly committed = new Map<string, bigint>();
  readonly #watchers = new Set<() => void>();

  send(...sent: readonly Sent[]): void {
    for (const each of sent) {
      const { topic = 'orders', partition = 0 } = each;
      const records = this.records(topic, partition);
      const headers: Record<string, Uint8Array> = {};
      if (each.id !== undefined) headers[HEADERS.eventId] = encode(each.id);
      if (each.type !== undefined) headers[HEADERS.eventType] = encode(each.type);
      for (const [name, value] of Object.entries(each.headers ?? {})) headers[name] = bytes(value);
      const { key = null, value = encode(JSON.stringify(each.payload ?? {})) } = each;
      records.push({
        topic,
        partition,
        offset: BigInt(records.length),
        key: key === null ? null : bytes(key),
        value,
        headers,
        timestamp: 1_700_000_000_000,
      });
    }
    for (const wake of this.#watchers) wake();
  }

  records(topic: string, partition: number): ReceivedRecord[] {
    const place = `${topic}/${partition}`;
    const records = this.log.get(place) ?? [];
    this.log.set(place, records);
    return records;
  }

  /** Resolves with the next send, or when the signal aborts. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#watchers.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#watchers.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}

export interface Faults {
  /** Answers for the broker; undefined lets the commit through. */
  commit?: (nextOffset: bigint) => CommitOutcome | undefined;
  partitions?: readonly number[];
}

interface Assignment {
  readonly gone: AbortController;
  readonly lost: AbortController;
  readonly revoking: AbortController;
  loop: Promise<void>;
}

export class InProcessSubscriber implements Subscriber {
  /** Offsets of each delivered batch, in order. */
  readonly deliveries: bigint[][] = [];
  readonly rejections: unknown[] = [];
  readonly #broker: InProcessBroker;
  readonly #faults: Faults;
  readonly #assignments = new Map<string, Assignment>();
  #options: SubscribeOptions | undefined;

  constructor(broker: InProcessBroker, faults: Faults = {}) {
    this.#broker = broker;
    this.#faults = faults;
  }

  async start(options: SubscribeOptions): Promise<void> {
    this.#options = options;
    for (const topic of options.topics) for (const each of this.#faults.partitions ?? [0]) this.assign(topic, each);
  }

  async stop(deadline: AbortSignal): Promise<void> {
    const leaving = [...this.#assignments.values()];
    for (const { gone, revoking } of leaving) {
      gone.abort();
      revoking.abort();
    }
    const expired = new Promise<void>((resolve) => {
      if (deadline.aborted) resolve();
      else
        deadline.addEventListener('abort', () => {
          resolve();
        });
    });
    await Promise.race([Promise.all(leaving.map(({ loop }) => loop)), expired]);
    this.#assignments.clear();
    this.#options = undefined;
  }

  health(): SubscriberHealth {
    return { state: this.#options === undefined ? 'stopped' : 'joined', sinceHeartbeatMs: 0 };
  }

  assign(topic: string, partition: number): void {
    const options = this.#options!;
    const assignment: Assignment = {
      gone: new AbortController(),
      lost: new AbortController(),
      revoking: new AbortController(),
      loop: Promise.resolve(),
    };
    this.#assignments.set(`${topic}/${partition}`, assignment);
    assignment.loop = this.#deliver(options, topic, partition, assignment);
  }

  /** The partition has gone to somebody else already. */
  lose(topic = 'orders', partition = 0): Promise<void> {
    return this.#take(topic, partition, 'lost');
  }

  /** The partition is about to go; resolves when the running batch has let go of it. */
  revoke(topic = 'orders', partition = 0): Promise<void> {
    return this.#take(topic, partition, 'revoking');
  }

  async #take(topic: string, partition: number, how: 'lost' | 'revoking'): Promise<void> {
    const assignment = this.#assignments.get(`${topic}/${partition}`)!;
    this.#assignments.delete(`${topic}/${partition}`);
    assignment.gone.abort();
    assignment[how].abort(new Error(how));
    await assignment.loop;
  }

  async #deliver(options: SubscribeOptions, topic: string, partition: number, held: Assignment): Promise<void> {
    const place = `${topic}/${partition}`;
    let position = this.#broker.committed.get(place) ?? 0n;
    while (!held.gone.signal.aborted) {
      const records = this.#broker
        .records(topic, partition)
        .slice(Number(position), Number(position) + options.maxBatch);
      if (records.length === 0) {
        await this.#broker.change(held.gone.signal);
        continue;
      }
      this.deliveries.push(records.map((record) => record.offset));
      try {
        await options.onBatch(this.#batch(topic, partition, records, held));
        const endedEarly = held.revoking.signal.aborted || held.lost.signal.aborted;
        position = endedEarly ? (this.#broker.committed.get(place) ?? 0n) : records.at(-1)!.offset + 1n;
      } catch (error) {
        this.rejections.push(error);
        position = this.#broker.committed.get(place) ?? 0n;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  #batch(topic: string, partition: number, records: ReceivedRecord[], held: Assignment): ReceivedBatch {
    const place = `${topic}/${partition}`;
    return {
      topic,
      partition,
      records,
      lost: held.lost.signal,
      revoking: held.revoking.signal,
      commit: async (nextOffset) => {
        const answer = this.#faults.commit?.(nextOffset);
        if (answer !== undefined) return answer;
        if (held.lost.signal.aborted || nextOffset < (this.#broker.committed.get(place) ?? 0n)) return 'fenced';
        this.#broker.committed.set(place, nextOffset);
        return 'committed';
      },
    };
  }
}
