import { boolean, callback, integer, parseOptions, port, text } from '../../options.js';
import type { BrokerRecord, Publisher, PublishOutcome } from '../../ports/broker.js';
import { deadlineAfter, systemClock, type Clock } from '../../ports/clock.js';
import { silentLogger, type Logger } from '../../ports/logger.js';
import type { Resource } from '../../ports/stop.js';
import { describeFailure, isRecordFault, outcomeOf } from './kafkajs-failure.js';
import { clientIdOf, kafkaSource, onlySafe, openKafka } from './kafkajs-options.js';
import { createJavaPartitioner } from './kafkajs-partitioner.js';
import { DisposableProducer, type ProducerSettings } from './kafkajs-producer.js';
import { encodeRecord, type EncodedRecord } from './kafkajs-record.js';
import type { KafkajsPartitioner, KafkajsSource } from './kafkajs-types.js';
import { until } from './until.js';

export interface KafkajsPublisherOptions {
  readonly kafka: KafkajsSource;
  /** Name of the resource, and in the client id where `kafka` is a function. Default `kafkajs-publisher`. */
  readonly name?: string;
  /** Lets the broker drop the repetitions of kafkajs's own retries. It is no guarantee beyond one call. Default true. */
  readonly idempotent?: boolean;
  /** The smallest `max.message.bytes` among the topics: larger records are rejected unsent, larger batches are cut. Default 1048588, as the broker's. */
  readonly maxRecordBytes?: number;
  /** Longest wait for a connection within one `publish`, in milliseconds. Default 5000. */
  readonly connectTimeoutMs?: number;
  /** How long a broker may wait for its replicas, in milliseconds. Default 10000. */
  readonly ackTimeoutMs?: number;
  /** As kafkajs's `createPartitioner`. Default: the one of the Java client. */
  readonly createPartitioner?: () => KafkajsPartitioner;
  /** Only -1 (all in-sync replicas). */
  readonly acks?: -1;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

export type KafkajsPublisher = Publisher & Resource & AsyncDisposable;

const table = {
  kafka: kafkaSource,
  name: text({ default: 'kafkajs-publisher' }),
  idempotent: boolean(true),
  maxRecordBytes: integer({ default: 1_048_588, min: 1_024 }),
  connectTimeoutMs: integer({ default: 5_000, min: 1 }),
  ackTimeoutMs: integer({ default: 10_000, min: 1 }),
  createPartitioner: callback<() => KafkajsPartitioner>(createJavaPartitioner),
  acks: onlySafe('acks', [-1], 'anything but -1 acknowledges records that a broker failure loses'),
  logger: port<Logger>(['debug', 'info', 'warn', 'error'], silentLogger),
  clock: port<Clock>(['monotonicMs', 'setTimer'], systemClock),
};

const BEHIND_FAILED: PublishOutcome = {
  status: 'retriable',
  reason: 'not sent: an earlier record of its key was not stored',
};
const STOP_WAIT_MS = 5_000;

interface Entry {
  readonly record: BrokerRecord;
  readonly index: number;
  readonly encoded: EncodedRecord;
}

/**
 * A publisher on kafkajs. It connects with the first `publish`, and again after every failure; a broker that is down gives
 * `retriable`. Within one call the records of a key are stored all or as a prefix: nothing is sent behind a record of the same
 * topic and key that was not stored.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID, RS_BROKER_UNSAFE_SETTING
 */
export function kafkajsPublisher(given: KafkajsPublisherOptions): KafkajsPublisher {
  const options = parseOptions('kafkajsPublisher', table, given);
  const closing = new AbortController();
  let stopped = false;
  let settings: ProducerSettings | undefined;
  let producer: DisposableProducer | undefined;
  // One send at a time: those behind a failed send would meet its sequence numbers.
  let turn: Promise<unknown> = Promise.resolve();

  async function connected(signal: AbortSignal): Promise<DisposableProducer | PublishOutcome> {
    if (producer?.usable) return producer;
    settings ??= { ...options, kafka: openKafka(options.kafka, clientIdOf(options.name)) };
    const limit = deadlineAfter(options.clock, options.connectTimeoutMs, signal);
    let candidate: DisposableProducer | undefined;
    try {
      candidate = new DisposableProducer(settings);
      const connection = await until(candidate.connect(), limit.signal);
      if (!connection.aborted) return (producer = candidate);
      candidate.discard();
      return { status: 'retriable', reason: 'no connection to the broker in time' };
    } catch (error) {
      candidate?.discard();
      const { reason } = describeFailure(error);
      options.logger.warn({ reason }, 'the broker cannot be reached');
      return { status: 'retriable', reason };
    } finally {
      limit.dispose();
    }
  }

  async function publishTopic(topic: string, entries: Entry[], told: PublishOutcome[], signal: AbortSignal) {
    const heldKeys = new Set<string>();
    const tell = (entry: Entry, outcome: PublishOutcome): void => {
      told[entry.index] = outcome;
    };
    const waiting = chunks(withoutOversize(entries, options.maxRecordBytes, tell), options.maxRecordBytes);
    for (let chunk = waiting.shift(); chunk; chunk = waiting.shift()) {
      const sendable = chunk.filter((entry) => {
        if (entry.record.key === null || !heldKeys.has(entry.record.key)) return true;
        tell(entry, BEHIND_FAILED);
        return false;
      });
      if (sendable.length === 0) continue;
      const result = await send(topic, sendable, signal);
      if (result.status === 'split') {
        waiting.unshift(...halves(sendable));
        continue;
      }
      for (const entry of sendable) {
        tell(entry, result);
        if (result.status !== 'stored' && entry.record.key !== null) heldKeys.add(entry.record.key);
      }
      if (result.status === 'stored' || result.status === 'rejected') continue;
      const reason = `not sent: an earlier part of the batch failed (${result.reason})`;
      for (const entry of waiting.splice(0).flat()) {
        tell(entry, result.status === 'topic-refused' ? result : { status: 'retriable', reason });
      }
    }
  }

  async function send(
    topic: string,
    entries: readonly Entry[],
    signal: AbortSignal,
  ): Promise<PublishOutcome | { readonly status: 'split' }> {
    if (signal.aborted) return { status: 'retriable', reason: 'not sent: the deadline has passed' };
    const connection = await connected(signal);
    if (!(connection instanceof DisposableProducer)) return connection;
    const found = await connection.findTopic(topic, signal);
    if (!found.sent) return outcomeOf(found.failure, true);
    const messages = entries.map(({ encoded }) => encoded.message);
    const result = await connection.send(topic, messages, signal);
    if (result.sent) return { status: 'stored' };
    if (!isRecordFault(result.failure)) return outcomeOf(result.failure, result.nothingSent);
    return entries.length > 1 ? { status: 'split' } : { status: 'rejected', reason: result.failure.reason };
  }

  async function publishAll(records: readonly BrokerRecord[], told: PublishOutcome[], signal: AbortSignal) {
    for (const [topic, entries] of byTopic(records, told)) await publishTopic(topic, entries, told, signal);
  }

  const publisher: KafkajsPublisher = {
    name: options.name,

    publish: async (records, deadline) => {
      if (stopped) return records.map(() => ({ status: 'retriable', reason: 'not sent: the publisher has stopped' }));
      const told = records.map((): PublishOutcome => ({ status: 'retriable', reason: 'not sent' }));
      const signal = AbortSignal.any([deadline, closing.signal]);
      const before = turn;
      let end = (): void => undefined;
      turn = Promise.all([before, new Promise<void>((resolve) => (end = resolve))]);
      try {
        const mine = await until(before, signal);
        if (!mine.aborted) await publishAll(records, told, signal);
      } catch (error) {
        // A foreign partitioner or factory may throw anything; what became of the rest is not known.
        const { reason } = describeFailure(error);
        options.logger.error({ error }, 'publishing failed unexpectedly');
        return told.map((outcome) => (outcome.status === 'stored' ? outcome : { status: 'unknown', reason }));
      } finally {
        end();
      }
      return told;
    },

    stop: async (deadline) => {
      stopped = true;
      await until(turn, deadline);
      closing.abort(new Error('the publisher has stopped'));
      const last = producer;
      producer = undefined;
      if (!last) return;
      // kafkajs waits for answers that may never come, and tells errors of a connection that is given up anyway.
      await until(
        last.disconnect().catch(() => undefined),
        deadline,
      );
    },

    [Symbol.asyncDispose]: async () => {
      const limit = deadlineAfter(options.clock, STOP_WAIT_MS);
      await publisher.stop(limit.signal);
      limit.dispose();
    },
  };
  return publisher;
}

/** Records by topic, in their order; one that cannot be encoded is rejected on the spot. */
function byTopic(records: readonly BrokerRecord[], told: PublishOutcome[]): Map<string, Entry[]> {
  const topics = new Map<string, Entry[]>();
  for (const [index, record] of records.entries()) {
    let encoded: EncodedRecord;
    try {
      encoded = encodeRecord(record);
    } catch (error) {
      told[index] = { status: 'rejected', reason: `cannot be encoded: ${describeFailure(error).reason}` };
      continue;
    }
    const entries = topics.get(record.topic);
    if (entries) entries.push({ record, index, encoded });
    else topics.set(record.topic, [{ record, index, encoded }]);
  }
  return topics;
}

/** What may be sent: no oversize record, and nothing that would overtake one of its key. */
function withoutOversize(entries: Entry[], limit: number, tell: (entry: Entry, outcome: PublishOutcome) => void) {
  const overtaken = new Set<string>();
  return entries.filter((entry) => {
    const { record, encoded } = entry;
    if (record.key !== null && overtaken.has(record.key)) {
      tell(entry, BEHIND_FAILED);
      return false;
    }
    if (encoded.leastBytes <= limit) return true;
    const reason = `MESSAGE_TOO_LARGE: ${String(encoded.leastBytes)} bytes, the limit is ${String(limit)}`;
    tell(entry, { status: 'rejected', reason });
    if (record.key !== null) overtaken.add(record.key);
    return false;
  });
}

/** The broker bounds a batch, not a record, and kafkajs does not cut: a chunk fits even when all of it goes into one partition. */
function chunks(entries: readonly Entry[], limit: number): Entry[][] {
  const cut: Entry[][] = [];
  let bytes = Infinity;
  for (const entry of entries) {
    bytes += entry.encoded.mostBytes;
    if (bytes > limit) {
      cut.push([]);
      bytes = entry.encoded.mostBytes;
    }
    cut.at(-1)?.push(entry);
  }
  return cut;
}

function halves(entries: readonly Entry[]): Entry[][] {
  const middle = Math.ceil(entries.length / 2);
  return [entries.slice(0, middle), entries.slice(middle)];
}
