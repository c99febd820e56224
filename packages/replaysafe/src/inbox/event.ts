import type { ErrorCode } from '../errors.js';
import { HEADERS, type ReceivedRecord } from '../ports/broker.js';

/** An event as a handler gets it. */
export interface InboxEvent {
  /** What the consumer dedups by: the `event-id` header, or what the option `eventId` made of the record. */
  readonly id: string;
  /** The `event-type` header, empty where there is none. */
  readonly type: string;
  readonly key: string | null;
  /** The value parsed as JSON where the content type says so (by default it does), else the bytes; null for a null value. */
  readonly payload: unknown;
  /** The value as the broker has it. */
  readonly bytes: Uint8Array | null;
  /** Headers as text; bytes that are not UTF-8 read as U+FFFD. */
  readonly headers: Readonly<Record<string, string>>;
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  /** Milliseconds since the epoch, as the broker stored it. */
  readonly timestamp: number;
}

export type UnusableCode = Extract<ErrorCode, 'RS_INBOX_EVENT_ID_MISSING' | 'RS_INBOX_PAYLOAD_INVALID'>;

/** A record, read once: an event, or the reason why no handler can be given it. */
export type Content =
  | { readonly kind: 'event'; readonly id: string; readonly event: InboxEvent }
  | {
      readonly kind: 'unusable';
      /** Undefined where the record carries none. */
      readonly id: string | undefined;
      readonly code: UnusableCode;
      readonly reason: unknown;
    };

export interface Reading {
  /** Foreign producers' id; default: the `event-id` header. */
  readonly eventId: (record: ReceivedRecord) => string | undefined;
  /** Content type of a record that names none. */
  readonly defaultContentType: string;
}

const lenient = new TextDecoder('utf-8', { ignoreBOM: true });
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** JSON may begin with a byte order mark, which is no part of it. */
const json = new TextDecoder('utf-8', { fatal: true });

const LONGEST_ID = 255;
// What the event_id column takes: no NUL, nothing that is not UTF-8.

const UNFIT_FOR_ID = /\u0000|\p{Surrogate}/u;
const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json(?:\s*;|$)/i;

export const eventIdHeader = (record: ReceivedRecord): string | undefined => {
  const header = record.headers[HEADERS.eventId];
  return header === undefined ? undefined : lenient.decode(header);
};

export function readRecord(record: ReceivedRecord, reading: Reading): Content {
  let id: string | undefined;
  try {
    id = usableId(reading.eventId(record));
  } catch (error) {
    return { kind: 'unusable', id: undefined, code: 'RS_INBOX_EVENT_ID_MISSING', reason: error };
  }
  if (id === undefined) {
    return {
      kind: 'unusable',
      id,
      code: 'RS_INBOX_EVENT_ID_MISSING',
      reason: `no id of 1 to ${LONGEST_ID} characters`,
    };
  }
  const headers = textHeaders(record);
  const decoded = decode(record.value, headers[HEADERS.contentType] ?? reading.defaultContentType);
  if (decoded === undefined) {
    return { kind: 'unusable', id, code: 'RS_INBOX_PAYLOAD_INVALID', reason: 'the value is not JSON in UTF-8' };
  }
  return { kind: 'event', id, event: eventOf(record, id, headers, decoded.payload) };
}

function decode(value: Uint8Array | null, contentType: string): { readonly payload: unknown } | undefined {
  if (value === null || !JSON_TYPE.test(contentType.trim())) return { payload: value };
  try {
    return { payload: JSON.parse(json.decode(value)) };
  } catch {
    // The parser's message quotes the payload, which may be anybody's secret.
    return undefined;
  }
}

function eventOf(
  record: ReceivedRecord,
  id: string,
  headers: Readonly<Record<string, string>>,
  payload: unknown,
): InboxEvent {
  return {
    id,
    type: headers[HEADERS.eventType] ?? '',
    key: record.key === null ? null : lenient.decode(record.key),
    payload,
    bytes: record.value,
    headers,
    topic: record.topic,
    partition: record.partition,
    offset: record.offset,
    timestamp: record.timestamp,
  };
}

export function textHeaders(record: ReceivedRecord): Readonly<Record<string, string>> {
  // No prototype: a header may be called `__proto__`.
  const headers = Object.create(null) as Record<string, string>;
  for (const [name, value] of Object.entries(record.headers)) headers[name] = lenient.decode(value);
  return headers;
}

/** Text where the bytes are text that a column takes; undefined for anything else. */
export function exactText(bytes: Uint8Array): string | undefined {
  try {
    const text = strict.decode(bytes);
    return UNFIT_FOR_ID.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function usableId(id: unknown): string | undefined {
  if (typeof id !== 'string' || id === '' || id.length > LONGEST_ID || UNFIT_FOR_ID.test(id)) return undefined;
  return id;
}
