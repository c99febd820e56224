import type { Logger } from '../../ports/logger.js';
import { describeFailure, isTopicFault, type KafkajsFailure } from './kafkajs-failure.js';
import type { KafkajsAdmin, KafkajsClient, KafkajsMessage, KafkajsPartitioner } from './kafkajs-types.js';
import { until } from './until.js';

export interface ProducerSettings {
  readonly kafka: KafkajsClient;
  readonly idempotent: boolean;
  readonly ackTimeoutMs: number;
  readonly createPartitioner: () => KafkajsPartitioner;
  readonly logger: Logger;
}

export type SendResult =
  { readonly sent: true } | { readonly sent: false; readonly failure: KafkajsFailure; readonly nothingSent: boolean };

/** kafkajs tries five times, over 2.5 s: enough for a moved leader. How long to go on with a broker that is down is the caller's. */
const RETRY = { initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };

/**
 * One kafkajs producer, used by one send at a time and thrown away with the first send that fails: kafkajs takes its sequence
 * numbers back when a send fails, so that a batch which the broker did store makes it swallow the next one as a repetition, and
 * acknowledge it.
 */
export class DisposableProducer {
  readonly #settings: ProducerSettings;
  readonly #producer;
  readonly #knownTopics = new Set<string>();
  #admin: KafkajsAdmin | undefined;
  #reachedPartitioning = false;
  #discarded = false;

  constructor(settings: ProducerSettings) {
    this.#settings = settings;
    this.#producer = settings.kafka.producer({
      idempotent: settings.idempotent,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
      createPartitioner: () => this.#watch(settings.createPartitioner()),
      retry: RETRY,
    });
  }

  get usable(): boolean {
    return !this.#discarded;
  }

  connect(): Promise<void> {
    return this.#producer.connect();
  }

  /** kafkajs tries again and again before it tells that a topic does not exist, so each new one is asked for first. */
  async findTopic(topic: string, signal: AbortSignal): Promise<SendResult> {
    if (this.#knownTopics.has(topic)) return { sent: true };
    try {
      const asked = await until(this.#askFor(topic), signal);
      if (asked.aborted) return this.#fail(undefined, 'the deadline passed before the topic was known');
      this.#knownTopics.add(topic);
      return { sent: true };
    } catch (error) {
      const failure = describeFailure(error);
      if (!isTopicFault(failure)) this.discard();
      return { sent: false, failure, nothingSent: true };
    }
  }

  async send(topic: string, messages: KafkajsMessage[], signal: AbortSignal): Promise<SendResult> {
    this.#reachedPartitioning = false;
    try {
      const { ackTimeoutMs } = this.#settings;
      const sending = this.#producer.send({ topic, acks: -1, timeout: ackTimeoutMs, messages });
      const sent = await until(sending, signal);
      if (!sent.aborted) return { sent: true };
      return this.#fail(undefined, 'no acknowledgement by the deadline');
    } catch (error) {
      const failure = describeFailure(error);
      this.#settings.logger.warn({ topic, reason: failure.reason }, 'a send failed; the producer is replaced');
      return this.#fail(failure);
    }
  }

  /** Leaves it behind: what it may still be retrying ends at its next look at the partitions. */
  discard(): void {
    this.#discarded = true;
    void this.disconnect().catch(() => undefined);
  }

  async disconnect(): Promise<void> {
    this.#discarded = true;
    await Promise.all([this.#producer.disconnect(), this.#admin?.disconnect()]);
  }

  #fail(failure: KafkajsFailure | undefined, reason = ''): SendResult {
    const nothingSent = !this.#reachedPartitioning;
    this.discard();
    return { sent: false, failure: failure ?? { type: undefined, reason }, nothingSent };
  }

  async #askFor(topic: string): Promise<void> {
    if (!this.#admin) {
      this.#admin = this.#settings.kafka.admin({ retry: RETRY });
      await this.#admin.connect();
    }
    await this.#admin.fetchTopicMetadata({ topics: [topic] });
  }

  /** kafkajs chooses the partitions after it has its metadata and before it writes: nothing is sent before the first choice. */
  #watch(choose: KafkajsPartitioner): KafkajsPartitioner {
    return (choice) => {
      if (this.#discarded) throw new Error('the producer was discarded');
      this.#reachedPartitioning = true;
      return choose(choice);
    };
  }
}
