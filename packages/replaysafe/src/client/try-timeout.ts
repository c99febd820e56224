import type { Exchange } from './exchange.js';

export interface TryTimeouts {
  readonly connectMs: number;
  readonly headersMs: number;
  readonly bodyMs: number;
}

export type TimeoutCode = 'CONNECT_TIMEOUT' | 'HEADERS_TIMEOUT' | 'BODY_TIMEOUT';

/** Ends one try, and says what it waited for. */
export class TryTimeout extends Error {
  readonly code: TimeoutCode;

  constructor(code: TimeoutCode) {
    super('a try took too long');
    this.code = code;
  }
}

export interface TryLimit {
  /** By the monotonic clock. */
  readonly at: number;
  readonly code: TimeoutCode;
}

/** When a try has waited too long for what it waits for now. */
export function limitOf(exchange: Exchange, timeouts: TryTimeouts): TryLimit {
  const { progressAt } = exchange;
  if (!exchange.sent) return { at: progressAt + timeouts.connectMs, code: 'CONNECT_TIMEOUT' };
  if (exchange.status === 0) return { at: progressAt + timeouts.headersMs, code: 'HEADERS_TIMEOUT' };
  return { at: progressAt + timeouts.bodyMs, code: 'BODY_TIMEOUT' };
}
