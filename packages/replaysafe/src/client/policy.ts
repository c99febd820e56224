import { ReplaysafeError } from '../errors.js';

/** Whether a call may be sent more than once. Decided before the first try, from the call alone. */
export function mayRepeat(call: {
  method: string;
  key: string | undefined;
  retry: boolean;
  repeatable: boolean;
}): boolean {
  if (!call.retry) return false;
  return isRead(call.method) || call.key !== undefined || call.repeatable;
}

export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/**
 * A write that could arrive twice without a key is refused before it is sent (R-SHUT-IDEM-X1, R-RES-RE-X1).
 * @throws RS_CLIENT_KEY_REQUIRED
 */
export function refuseKeylessWrite(call: {
  method: string;
  key: string | undefined;
  retry: boolean;
  repeatable: boolean;
}): void {
  const { method, key, retry, repeatable } = call;
  if (repeatable && method !== 'PUT' && method !== 'DELETE') {
    throw new ReplaysafeError('RS_CLIENT_KEY_REQUIRED', {
      detail: `${method} cannot be declared repeatable, only PUT and DELETE can`,
    });
  }
  if (isRead(method) || key !== undefined || repeatable || !retry) return;
  throw new ReplaysafeError('RS_CLIENT_KEY_REQUIRED', {
    detail: `${method} without idempotencyKey; pass one, or retry: false to send it exactly once (R-SHUT-IDEM-X1)`,
  });
}

/**
 * The wait that an answer asks for, in milliseconds: `Retry-After` in seconds or as a date.
 * @returns 0 where it asks for none, or for one that cannot be read
 */
export function retryAfterMs(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d+$/.test(header)) return Number(header) * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}

/** Errors of a connection that was never made: nothing has been sent. */
const NOTHING_SENT = new Set([
  'UND_ERR_CONNECT_TIMEOUT',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
]);
/** The pool itself refused the request. */
const NEVER_SENT = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED']);
const TIMED_OUT = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT']);

/** What a try that ended without an answer means for the caller. */
export function failureOf(cause: unknown, write: boolean): ReplaysafeError {
  const code = errorCode(cause);
  if (NEVER_SENT.has(code)) return new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { cause, detail: code });
  if (NOTHING_SENT.has(code)) return new ReplaysafeError('RS_CLIENT_SYSTEM_UNAVAILABLE', { cause, detail: code });
  if (write) return new ReplaysafeError('RS_CLIENT_OUTCOME_UNKNOWN', { cause, detail: code });
  return new ReplaysafeError(TIMED_OUT.has(code) ? 'RS_CLIENT_TIMEOUT' : 'RS_CLIENT_SYSTEM_UNAVAILABLE', {
    cause,
    detail: code,
  });
}

function errorCode(error: unknown): string {
  // A host with several addresses fails with one error for each of them.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && 'code' in first && typeof first.code === 'string' ? first.code : 'no code';
}
