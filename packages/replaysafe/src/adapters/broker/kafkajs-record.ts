import type { BrokerRecord, ReceivedRecord } from '../../ports/broker.js';
import type { KafkajsHeaders, KafkajsMessage, KafkajsReceivedMessage } from './kafkajs-types.js';

/** Bytes of a record batch around its records. */
const BATCH_OVERHEAD = 61;

export interface EncodedRecord {
  readonly message: KafkajsMessage;
  /** Bytes of its parts alone: a record whose parts exceed the limit cannot fit. */
  readonly leastBytes: number;
  /** No encoding of it, alone in its batch, is longer. */
  readonly mostBytes: number;
}

/** @throws TypeError for a record whose parts are not what their types say. */
export function encodeRecord(record: BrokerRecord): EncodedRecord {
  const { key, value } = record;
  const headers: KafkajsHeaders = {};
  let bytes = key === null ? 0 : Buffer.byteLength(key);
  bytes += value?.byteLength ?? 0;
  let lengths = 4 * 5 + 10 + 1;
  for (const [name, text] of Object.entries(record.headers)) {
    headers[name] = text;
    bytes += Buffer.byteLength(name) + Buffer.byteLength(text);
    lengths += 2 * 5;
  }
  return {
    message: {
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value.buffer, value.byteOffset, value.byteLength),
      headers,
    },
    leastBytes: BATCH_OVERHEAD + bytes,
    mostBytes: BATCH_OVERHEAD + bytes + lengths,
  };
}

export function decodeMessage(topic: string, partition: number, message: KafkajsReceivedMessage): ReceivedRecord {
  const headers: Record<string, Uint8Array> = {};
  for (const [name, given] of Object.entries(message.headers ?? {})) {
    const last = Array.isArray(given) ? given.at(-1) : given;
    if (last === undefined) continue;
    headers[name] = typeof last === 'string' ? Buffer.from(last) : last;
  }
  return {
    topic,
    partition,
    offset: BigInt(message.offset),
    key: message.key,
    value: message.value,
    headers,
    timestamp: Number(message.timestamp),
  };
}
