import { ReplaysafeError } from '../errors.js';
import { bodyBytes, type HttpAnswer } from './http.js';

/** Answers that say "not now" or "not you": the next try may be answered otherwise, so nothing of this one is kept. */
const NOT_DEFINITIVE: ReadonlySet<number> = new Set([401, 403, 408, 413, 421, 425, 429]);

/** Headers of a stored answer that are sent again. */
const STORED_HEADERS = [
  'content-type',
  'content-language',
  'content-disposition',
  'content-location',
  // Set by a handler that encoded the body itself: without it the bytes could not be read.
  'content-encoding',
  'location',
  'etag',
  'last-modified',
  'link',
];

/** Secrets of one exchange, and what belongs to one connection or one moment. */
const NEVER_STORED: ReadonlySet<string> = new Set([
  ...['set-cookie', 'set-cookie2', 'authorization', 'proxy-authorization', 'authentication-info', 'www-authenticate'],
  ...[
    'proxy-authenticate',
    'proxy-authentication-info',
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
  ],
  ...['transfer-encoding', 'upgrade', 'content-length', 'date', 'age', 'retry-after', 'cache-control'],
  ...['ratelimit', 'ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
  ...['traceparent', 'tracestate', 'x-request-id', 'server-timing', 'idempotent-replayed'],
]);

/** Whether an answer is the last word on its operation: 2xx, 3xx, and the 4xx that a repetition cannot change. */
export function isDefinitive(status: number): boolean {
  return status >= 200 && status < 500 && !NOT_DEFINITIVE.has(status);
}

/** @returns what is wrong with a name for the list of stored headers, or nothing */
export function refuseStoredHeaders(names: unknown): string | undefined {
  if (!Array.isArray(names)) return 'must be a list of header names';
  for (const name of names) {
    if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
      return 'must be a list of header names';
    if (NEVER_STORED.has(name.toLowerCase())) return `must not hold ${name.toLowerCase()}, which is never stored`;
  }
  return undefined;
}

export interface StoredColumns {
  readonly status: number;
  /** JSON. */
  readonly headers: string;
  readonly body: Uint8Array | null;
  readonly bodyOmitted: boolean;
}

export interface AnswerCodec {
  encode(answer: HttpAnswer): StoredColumns;
  decode(stored: StoredColumns): HttpAnswer | undefined;
}

/** @param more header names beside the built-in list @param maxBodyBytes a longer body is not stored */
export function answerCodec(more: readonly string[], maxBodyBytes: number): AnswerCodec {
  const allowed = new Set([...STORED_HEADERS, ...more.map((name) => name.toLowerCase())]);
  return {
    encode: (answer) => {
      const headers = Object.entries(answer.headers)
        .map(([name, value]) => [name.toLowerCase(), value] as const)
        .filter(([name]) => allowed.has(name));
      const bytes = answer.bodyUnavailable === true ? undefined : bodyBytes(answer.body);
      const body = bytes !== undefined && bytes.byteLength <= maxBodyBytes ? bytes : null;
      return {
        status: answer.status,
        headers: JSON.stringify(Object.fromEntries(headers)),
        body,
        bodyOmitted: body === null,
      };
    },
    decode: ({ status, headers, body, bodyOmitted }) =>
      bodyOmitted || body === null ? undefined : { status, headers: parseHeaders(headers), body },
  };
}

/** The stored answer as it is sent again. `Date` is the server's, new with each answer. */
export function replayed(answer: HttpAnswer): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, 'cache-control': 'no-store', 'idempotent-replayed': 'true' } };
}

function parseHeaders(json: string): HttpAnswer['headers'] {
  const parsed: unknown = JSON.parse(json);
  if (typeof parsed === 'object' && parsed !== null) return parsed as HttpAnswer['headers'];
  throw new ReplaysafeError('RS_IDEMPOTENCY_RESPONSE_UNAVAILABLE', { detail: 'the stored headers are no object' });
}
