import { createHash } from 'node:crypto';
import { HEADERS, type ReceivedRecord } from '../ports/broker.js';
import type { OutboxEvent } from '../ports/enqueue.js';
import { sqlState, type SqlTransaction } from '../ports/sql.js';
import { errorText, firstBytes } from './error-text.js';
import { exactText, textHeaders } from './event.js';
import type { Item, Surrender } from './item.js';
import { lateness } from './lateness.js';
import { joinSignals, type Lease } from './lease.js';
import { ReplaysafeError } from '../errors.js';
import type { Work } from './work.js';

/** Beyond what the server's own limits leave of a transaction of a few statements. */
const PARK_TIMEOUT_MS = 30_000;
const UNIQUE_VIOLATION = '23505';

/** Headers that the dead letter, or the relay, has a value of its own for; all others are taken over. */
const OWN_HEADERS: ReadonlySet<string> = new Set(Object.values(HEADERS).filter((name) => name !== HEADERS.traceparent));

/**
 * Gives an event up: its `parked` row and its dead letter in one transaction, so that nothing is acknowledged that is not
 * durable elsewhere, and a redelivery meets the row. A record without an id has no row; its dead letter has an id made of the
 * record itself, so that a redelivery writes it once.
 *
 * @returns `false` when the event is settled already
 */
export async function parkEvent<Tx, Prepared>(
  { options, processed }: Work<Tx, Prepared>,
  item: Item,
  surrender: Surrender,
  lease: Lease,
): Promise<boolean> {
  const { outbox, consumer } = options;
  if (outbox === undefined) throw new ReplaysafeError('RS_OPTION_REQUIRED', { detail: 'createConsumer: outbox' });
  const letter = deadLetter(item, surrender, consumer, options.deadLetterTopic(item.record.topic));
  const eventId = item.content.id;
  const late = lateness(options.clock);
  const cut = joinSignals(lease.cut, late.signal);
  late.after(PARK_TIMEOUT_MS, 'RS_SQL_UNAVAILABLE');
  const parking = options.sql.transaction(
    async (tx) => {
      if (eventId === undefined) return enqueueOnce(tx, () => outbox.enqueue(tx, letter));
      const parked = await processed.park(tx, {
        eventId,
        attempt: Math.max(1, item.attempts),
        errorCode: surrender.code,
        error: errorText(surrender.error),
      });
      if (parked) await outbox.enqueue(tx, letter);
      return parked;
    },
    {
      deadline: cut.signal,
      ...(eventId === undefined ? {} : { verify: processed.verification([eventId]) }),
    },
  );
  return parking.finally(() => {
    late.cancel();
    cut.dispose();
  });
}

async function enqueueOnce(tx: SqlTransaction, enqueue: () => Promise<unknown>): Promise<boolean> {
  try {
    await tx.savepoint(enqueue);
    return true;
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) return false;
    throw error;
  }
}

function deadLetter(item: Item, surrender: Surrender, consumer: string, topic: string): OutboxEvent {
  const { record, content } = item;
  const original = textHeaders(record);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(original)) {
    if (name !== '' && !OWN_HEADERS.has(name.toLowerCase())) headers[short(name)] = withoutNul(value);
  }
  headers[HEADERS.origin] = `${record.topic}/${String(record.partition)}/${record.offset.toString()}`;
  headers[HEADERS.consumer] = consumer;
  headers[HEADERS.attempt] = String(item.attempts);
  headers[HEADERS.errorCode] = surrender.code;
  headers[HEADERS.error] = errorText(surrender.error);
  if (content.id !== undefined) headers[HEADERS.originEventId] = content.id;
  const key = keyText(record.key);
  if (key === null && record.key !== null) headers[HEADERS.originKey] = Buffer.from(record.key).toString('base64url');

  const aggregateType = original[HEADERS.aggregateType];
  const contentType = original[HEADERS.contentType];
  return {
    ...(content.id === undefined ? { id: idOfRecord(record, consumer) } : {}),
    topic,
    type: short(original[HEADERS.eventType] ?? '') || 'unknown',
    ...(aggregateType ? { aggregateType: short(aggregateType) } : {}),
    key,
    payload: record.value,
    ...(contentType ? { contentType: short(contentType) } : {}),
    headers,
  };
}

const LONGEST_NAME_BYTES = 255;
const LONGEST_KEY_BYTES = 1_024;

const withoutNul = (text: string): string => text.replaceAll('\0', '\uFFFD');
const short = (text: string): string => firstBytes(withoutNul(text), LONGEST_NAME_BYTES);

/** The key as it was; null where it is no text that the outbox takes. */
function keyText(key: Uint8Array | null): string | null {
  if (key === null || key.length === 0 || key.length > LONGEST_KEY_BYTES) return null;
  return exactText(key) ?? null;
}

/**
 * A UUID (version 8) made of where the record stood and of what it holds: offsets begin anew in a topic that was made anew, and
 * another record must not pass for this one.
 */
function idOfRecord(record: ReceivedRecord, consumer: string): string {
  const hash = createHash('sha256');
  const place = [consumer, record.topic, String(record.partition), record.offset.toString(), String(record.timestamp)];
  for (const part of [...place, record.key, record.value]) {
    const bytes = part === null ? undefined : Buffer.from(part);
    hash.update(`${bytes === undefined ? 'none' : String(bytes.length)}:`);
    if (bytes !== undefined) hash.update(bytes);
  }
  const digest = hash.digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = digest.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
