import { callback, custom, integer, oneOf, optional, port, text } from '../options.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { poolHint, type SqlPort } from '../ports/sql.js';
import { stopSignals, type StopSignals } from '../ports/stop.js';
import type { HttpRequest, RouteOptions } from './http.js';
import { refuseStoredHeaders } from './stored-answer.js';

/**
 * Names the tenant or principal whose keys a request's key belongs to: 1 to 255 characters, never a secret. Called after
 * authentication; nothing returned means that the request is refused with RS_IDEMPOTENCY_SCOPE_INVALID.
 */
export type ScopeResolver = (request: HttpRequest) => string | undefined;

export interface IdempotencyOptions<Tx = unknown> {
  readonly sql: SqlPort<Tx>;
  /** Whose keys they are. One namespace for all callers must be said aloud: `single-tenant`. */
  readonly scope: 'single-tenant' | ScopeResolver;
  /** Default `replaysafe`. */
  readonly schema?: string;
  /** How long a duplicate waits for the first request, in milliseconds; 0 answers 409 at once. Default 1,000, at most 10,000. */
  readonly waitMs?: number;
  /** A longer body of an answer is not stored, in bytes. Its retries get `idempotency-response-unavailable`. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** How long a stored answer is sent again, in milliseconds. After that the key is refused as expired. Default 24 h. */
  readonly retentionMs?: number;
  /** Names of further response headers to store. */
  readonly storedHeaders?: readonly string[];
  /** What stands before the name of a problem in its `type`. Default `urn:replaysafe:problem:`. */
  readonly problemBase?: string;
  /** The status for a key that was first used with another request. Default 422. */
  readonly reusedStatus?: 422 | 409;
  /** Bound of the whole transaction, handler and COMMIT included, in milliseconds. Default 30,000. */
  readonly transactionTimeoutMs?: number;
  /** Bound of each statement, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number;
  /** Bound of each wait for a lock, in milliseconds. Default 5,000. */
  readonly lockTimeoutMs?: number;
  /** The server ends the session of a handler that sends no statement for so long, in milliseconds. Default 15,000. */
  readonly idleTimeoutMs?: number;
  /** Of the lifecycle. `stopping` sends waiters away; running handlers hear of `deadline` only. */
  readonly signals?: StopSignals;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

const isScope = (given: unknown): string | undefined =>
  given === 'single-tenant' || typeof given === 'function'
    ? undefined
    : "must be a function that names the caller's tenant or principal, or 'single-tenant'";

const isReusedStatus = (given: unknown): string | undefined =>
  given === 422 || given === 409 ? undefined : 'must be 422 or 409';

export const idempotencyOptions = <Tx>() =>
  ({
    sql: port<SqlPort<Tx>>(['query', 'transaction'], undefined, poolHint),
    scope: custom<'single-tenant' | ScopeResolver>(isScope),
    schema: text({ default: 'replaysafe', pattern: /^[a-z_][a-z0-9_]{0,62}$/ }),
    waitMs: integer({ default: 1_000, max: 10_000 }),
    maxBodyBytes: integer({ default: 1_048_576, max: 268_435_456 }),
    retentionMs: integer({ default: 86_400_000, min: 1 }),
    storedHeaders: custom<readonly string[]>(refuseStoredHeaders, []),
    problemBase: text({ default: 'urn:replaysafe:problem:' }),
    reusedStatus: custom<422 | 409>(isReusedStatus, 422),
    transactionTimeoutMs: integer({ default: 30_000, min: 1 }),
    statementTimeoutMs: integer({ default: 10_000, min: 1 }),
    lockTimeoutMs: integer({ default: 5_000, min: 1 }),
    idleTimeoutMs: integer({ default: 15_000, min: 1 }),
    signals: optional(stopSignals),
    logger: port<Logger>(['info', 'warn', 'error'], silentLogger),
    clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
    random: port<Random>(['next'], systemRandom),
  }) as const;

/** The readers of {@link RouteOptions}, for adapters that have options of their own beside them. */
export const ROUTE_OPTIONS = {
  key: optional(oneOf(['required', 'optional', 'off'])),
  fingerprint: optional(callback<NonNullable<RouteOptions['fingerprint']>>()),
} as const;
