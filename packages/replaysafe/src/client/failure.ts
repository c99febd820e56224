import { ReplaysafeError } from '../errors.js';
import type { PreparedCall } from './call.js';
import type { Exchange } from './exchange.js';
import { isRead } from './policy.js';
import type { TimeoutCode } from './try-timeout.js';

/** Why we ended a try ourselves. */
export type GiveUp = 'aborted' | 'timed-out' | 'stopped';

/** How a try without an answer ended. */
export interface TryFailure {
  readonly error: ReplaysafeError;
  /** Whether the same may end otherwise on a further try. */
  readonly transient: boolean;
  /** Whether the remote system may have executed the call. */
  readonly maybeExecuted: boolean;
  /** Whether it says something about the health of the remote system. */
  readonly ill: boolean;
}

/** The pool itself refused the request. */
const NEVER_SENT = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH']);
const TIMED_OUT = new Set<string>(['HEADERS_TIMEOUT', 'BODY_TIMEOUT'] satisfies TimeoutCode[]);
/** The answer itself is more than we take; it will be so again. */
const TOO_LARGE = new Set(['UND_ERR_RES_EXCEEDED_MAX_SIZE', 'UND_ERR_HEADERS_OVERFLOW']);
/** A certificate that is not accepted: somebody has to change something. */
const CERTIFICATE =
  /^(ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_(GET|VERIFY)_|INVALID_(CA|PURPOSE)|HOSTNAME_MISMATCH)/;

const GIVEN_UP = {
  aborted: 'RS_CLIENT_ABORTED',
  'timed-out': 'RS_CLIENT_TIMEOUT',
  stopped: 'RS_CLIENT_STOPPED',
} as const;

export function failureOf(call: PreparedCall, exchange: Exchange, givenUp: GiveUp | undefined): TryFailure {
  const cause = exchange.failure;
  const detail = errorCode(cause);
  if (NEVER_SENT.has(detail)) {
    const error = new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { cause, detail });
    return { error, transient: false, maybeExecuted: false, ill: false };
  }
  const write = !isRead(call.method);
  const maybeExecuted = write && exchange.sent;
  const ill = givenUp === undefined ? !TOO_LARGE.has(detail) : givenUp === 'timed-out';
  const transient = givenUp === undefined && !TOO_LARGE.has(detail) && !CERTIFICATE.test(detail);
  if (maybeExecuted) return { error: outcomeUnknown(call, cause, detail), transient, maybeExecuted, ill };
  if (givenUp !== undefined) {
    const error = new ReplaysafeError(GIVEN_UP[givenUp], { cause });
    return { error, transient, maybeExecuted, ill };
  }
  const code = TIMED_OUT.has(detail) ? 'RS_CLIENT_TIMEOUT' : 'RS_CLIENT_SYSTEM_UNAVAILABLE';
  return { error: new ReplaysafeError(code, { cause, detail }), transient, maybeExecuted, ill };
}

/** A write whose effect may or may not be there. */
export interface OutcomeUnknown extends ReplaysafeError {
  readonly code: 'RS_CLIENT_OUTCOME_UNKNOWN';
  /** The key to ask again with; never make a new one. Not enumerable, so that it is in no log by accident. */
  readonly idempotencyKey: string | undefined;
}

export function outcomeUnknown(call: PreparedCall, cause: unknown, detail?: string): ReplaysafeError {
  const error = new ReplaysafeError('RS_CLIENT_OUTCOME_UNKNOWN', detail === undefined ? { cause } : { cause, detail });
  Object.defineProperty(error, 'idempotencyKey', { value: call.key, enumerable: false });
  return error;
}

export function isOutcomeUnknown(error: unknown): error is OutcomeUnknown {
  return error instanceof Error && 'code' in error && error.code === 'RS_CLIENT_OUTCOME_UNKNOWN';
}

function errorCode(error: unknown): string {
  // A host with several addresses fails with one error for each of them.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error && 'code' in first && typeof first.code === 'string' ? first.code : 'no code';
}
