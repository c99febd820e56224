import { ReplaysafeError } from '../errors.js';
import { HEADERS } from '../ports/broker.js';
import { type OutboxEvent } from '../ports/enqueue.js';

/** An event as it is written: every field checked, the payload in bytes. */
export interface EventRow {
  readonly id: string | null;
  readonly topic: string;
  readonly type: string;
  readonly aggregateType: string | null;
  readonly key: string | null;
  readonly payload: Buffer | null;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly availableAt: string | null;
}

const FIELDS = new Set([
  'id',
  'topic',
  'type',
  'aggregateType',
  'key',
  'payload',
  'contentType',
  'headers',
  'availableAt',
]);

/** Headers that the relay writes itself. */
const RELAY_HEADERS: ReadonlySet<string> = new Set([
  HEADERS.eventId,
  HEADERS.eventType,
  HEADERS.contentType,
  HEADERS.aggregateType,
  HEADERS.claimToken,
]);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
// What Kafka accepts; a name it refuses would only be found by the relay, long after the business change.
const TOPIC = /^[a-zA-Z0-9._-]{1,249}$/;
const NAME_LENGTH = 255;
// An index over the key holds about 2,700 bytes; beyond that the insert of the business transaction would fail.
const KEY_BYTES = 1_024;
const LAST_YEAR = 9_999;
/** Says what the library's own type does not: nothing comes of a function or of undefined. */
const toJson = JSON.stringify as (value: unknown) => string | undefined;
const UNSTORABLE = /\0|\p{Surrogate}/u;

/**
 * Checks an event and encodes its payload.
 * @throws RS_OUTBOX_EVENT_INVALID naming the field, never its value
 */
export function encodeEvent(event: OutboxEvent, position: number): EventRow {
  const where = `event ${position}`;
  const given = event as unknown;
  if (given === null || typeof given !== 'object') throw invalid(where, 'is not an object');
  for (const name of Object.keys(given)) {
    if (!FIELDS.has(name)) throw invalid(where, `has an unknown field "${name}"; known are ${[...FIELDS].join(', ')}`);
  }
  const { id, topic, type, aggregateType, key, contentType, availableAt } = event;
  if (id !== undefined && (typeof id !== 'string' || !UUID.test(id))) throw invalid(where, 'id must be a UUID');
  if (typeof topic !== 'string' || !TOPIC.test(topic) || topic === '.' || topic === '..') {
    throw invalid(where, 'topic must be 1 to 249 letters, digits, dots, underscores and hyphens');
  }
  checkText(where, 'type', type, NAME_LENGTH);
  if (aggregateType !== undefined) checkText(where, 'aggregateType', aggregateType, NAME_LENGTH);
  if (contentType !== undefined) checkText(where, 'contentType', contentType, NAME_LENGTH);
  if (key !== undefined && key !== null) checkText(where, 'key', key, KEY_BYTES);
  const { bytes, defaultType } = encodePayload(where, event.payload);
  return {
    id: id?.toLowerCase() ?? null,
    topic,
    type,
    aggregateType: aggregateType ?? null,
    key: key ?? null,
    payload: bytes,
    contentType: contentType ?? defaultType,
    headers: checkHeaders(where, event.headers),
    availableAt: availableAt === undefined ? null : encodeMoment(where, availableAt),
  };
}

function encodePayload(where: string, payload: unknown): { bytes: Buffer | null; defaultType: string | null } {
  if (payload === null) return { bytes: null, defaultType: null };
  // Copied: the caller may use its buffer again before the driver has sent it.
  if (ArrayBuffer.isView(payload)) {
    const view = new Uint8Array(payload.buffer, payload.byteOffset, payload.byteLength);
    return { bytes: Buffer.from(view), defaultType: 'application/octet-stream' };
  }
  if (payload instanceof ArrayBuffer) {
    return { bytes: Buffer.from(new Uint8Array(payload)), defaultType: 'application/octet-stream' };
  }
  let json: string | undefined;
  try {
    json = toJson(payload);
  } catch (error) {
    throw invalid(where, 'payload cannot be written as JSON', error);
  }
  if (json === undefined) throw invalid(where, `payload is ${typeof payload}, which JSON cannot hold`);
  return { bytes: Buffer.from(json, 'utf8'), defaultType: 'application/json' };
}

function checkHeaders(where: string, headers: OutboxEvent['headers']): Readonly<Record<string, string>> {
  if (headers === undefined) return {};
  const given = headers as unknown;
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    throw invalid(where, 'headers must be an object of strings');
  }
  for (const [name, value] of Object.entries(headers)) {
    checkText(where, 'a header name', name, NAME_LENGTH);
    if (RELAY_HEADERS.has(name.toLowerCase())) throw invalid(where, `header "${name}" is written by the relay`);
    if (typeof value !== 'string') throw invalid(where, `header "${name}" must be a string`);
    if (UNSTORABLE.test(value)) throw invalid(where, `header "${name}" holds NUL or half a surrogate pair`);
  }
  return headers;
}

function checkText(where: string, field: string, value: unknown, maxBytes: number): void {
  if (typeof value !== 'string' || value === '' || Buffer.byteLength(value) > maxBytes) {
    throw invalid(where, `${field} must be a string of 1 to ${maxBytes} bytes`);
  }
  if (UNSTORABLE.test(value)) throw invalid(where, `${field} holds NUL or half a surrogate pair`);
}

function encodeMoment(where: string, moment: unknown): string {
  if (!(moment instanceof Date) || Number.isNaN(moment.getTime())) {
    throw invalid(where, 'availableAt must be a valid Date');
  }
  const year = moment.getUTCFullYear();
  if (year < 1 || year > LAST_YEAR) throw invalid(where, `availableAt must lie in the years 1 to ${LAST_YEAR}`);
  return moment.toISOString();
}

function invalid(where: string, complaint: string, cause?: unknown): ReplaysafeError {
  return new ReplaysafeError('RS_OUTBOX_EVENT_INVALID', { detail: `${where}: ${complaint}`, cause });
}
