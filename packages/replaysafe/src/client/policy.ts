import { ReplaysafeError } from '../errors.js';

interface Call {
  readonly method: string;
  readonly key: string | undefined;
  readonly retry: boolean;
  readonly repeatable: boolean;
}

/** Whether a call may be sent more than once. Decided before the first try, from the call alone. */
export function mayRepeat(call: Call): boolean {
  return call.retry && isSafeToRepeat(call);
}

/** Whether it does no harm that a call arrives twice. */
export function isSafeToRepeat(call: Call): boolean {
  return isRead(call.method) || call.key !== undefined || call.repeatable;
}

export function isRead(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS';
}

/**
 * A write that could arrive twice without a key is refused before it is sent (R-SHUT-IDEM-X1, R-RES-RE-X1).
 * @throws RS_CLIENT_KEY_REQUIRED
 */
export function refuseKeylessWrite(call: Call): void {
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
 * Where money moves, a write whose outcome is unknown must be asked for again, which only a key allows.
 * @throws RS_CLIENT_KEY_REQUIRED
 */
export function refuseWithoutKey({ method, key, retry, repeatable }: Call): void {
  if (isRead(method) || (key !== undefined && retry && !repeatable)) return;
  throw new ReplaysafeError('RS_CLIENT_KEY_REQUIRED', {
    detail: `a client with money: true takes ${method} with idempotencyKey only, without retry: false and repeatable`,
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
