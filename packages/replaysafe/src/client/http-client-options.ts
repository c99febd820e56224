import { ReplaysafeError } from '../errors.js';
import { boolean, callback, custom, integer, optional, parseOptions, port, text } from '../options.js';
import { invalidHeader } from './headers.js';
import { KEY_HEADER } from './key.js';
import type { Clock } from '../ports/clock.js';
import type { Logger } from '../ports/logger.js';
import type { Random } from '../ports/random.js';
import { stopSignals, type StopSignals } from '../ports/stop.js';

export interface HttpClientOptions {
  /** Names the remote system in events and errors. */
  readonly name: string;
  /** Origin and perhaps a path that every call's path is put behind. */
  readonly baseUrl: string;
  /**
   * In milliseconds: `connectMs` (1,000) for a connection, `headersMs` (5,000) from the request to the answer's head,
   * `bodyMs` (10,000) between two pieces of its body, `totalMs` (30,000) for the whole call with all tries and waits. Each must be
   * longer than the one before it (`bodyMs` may equal `headersMs`); those that are not given adapt to those that are.
   */
  readonly timeouts?: {
    readonly connectMs?: number;
    readonly headersMs?: number;
    readonly bodyMs?: number;
    readonly totalMs?: number;
  };
  /**
   * `tries` (3, at most 5) in all; waits of full jitter up to `baseMs` (200), doubling up to `capMs` (5,000). `budget` (100): so
   * many retries on credit, then one for every five calls that went well, so that an outage is not answered with three times
   * the traffic.
   */
  readonly retry?: {
    readonly tries?: number;
    readonly baseMs?: number;
    readonly capMs?: number;
    readonly budget?: number;
  };
  /**
   * Opens when `failurePercent` (50; 30 with `money`) of the last `window` (50) tries failed, of at least `minimumTries` (20); calls
   * then fail with RS_CLIENT_SYSTEM_UNAVAILABLE without being sent. After `openMs` (30,000) it lets `probes` (3) tries through
   * that are safe to repeat; it closes when all went well. No answer, and 5xx, are failures; other answers are not.
   */
  readonly breaker?: {
    readonly window?: number;
    readonly failurePercent?: number;
    readonly minimumTries?: number;
    readonly openMs?: number;
    readonly probes?: number;
  };
  /**
   * `concurrent` (`connections`) calls at once; `queue` (128) more wait, each at most `queueMs` (1,000). Others fail with
   * RS_CLIENT_OVERLOADED. A call that waits between two tries holds no slot.
   */
  readonly bulkhead?: { readonly concurrent?: number; readonly queue?: number; readonly queueMs?: number };
  /** Money moves here: every write needs a key, `retry: false` and `repeatable` are refused, the breaker opens earlier. */
  readonly money?: boolean;
  /** Asked once for each call, for the W3C header of that name. A header of the call's own comes first. */
  readonly traceparent?: () => string | undefined;
  /**
   * Warns, and emits `client.key-misused`, when one object is sent with two keys, or one key with two requests. For development,
   * e.g. `process.env.NODE_ENV !== 'production'`: it hashes every keyed request. Default false.
   */
  readonly warnOnKeyMisuse?: boolean;
  /** Sent with every call. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Most connections to this system. Default 64. */
  readonly connections?: number;
  /** Largest answer body, in bytes. Default 16 MiB. */
  readonly maxResponseBytes?: number;
  /** With these, waits between tries end as soon as the process stops, and running tries end at the deadline. */
  readonly signals?: StopSignals;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

const isObject = (given: unknown): string | undefined =>
  typeof given === 'object' && given !== null && !Array.isArray(given) ? undefined : 'must be an object';

const headersComplaint = (given: unknown): string | undefined => {
  const complaint = isObject(given) ?? invalidHeader(given as Readonly<Record<string, unknown>>);
  if (complaint !== undefined) return complaint;
  // One key for all calls would make every write the same operation.
  const named = Object.keys(given as object).some((name) => name.toLowerCase() === KEY_HEADER);
  return named ? 'must not hold an idempotency key: a key belongs to one operation' : undefined;
};

const httpUrl = custom<string>((given) => {
  if (typeof given === 'string' && URL.canParse(given)) {
    const { protocol, search, hash, username, password } = new URL(given);
    const plain = search === '' && hash === '' && username === '' && password === '';
    if ((protocol === 'http:' || protocol === 'https:') && plain) return undefined;
  }
  return 'must be an http or https URL without credentials and query';
});

const clientOptions = {
  name: text(),
  baseUrl: httpUrl,
  timeouts: optional(custom<object>(isObject)),
  retry: optional(custom<object>(isObject)),
  breaker: optional(custom<object>(isObject)),
  bulkhead: optional(custom<object>(isObject)),
  money: boolean(false),
  traceparent: optional(callback<() => string | undefined>()),
  warnOnKeyMisuse: boolean(false),
  headers: custom<Readonly<Record<string, string>>>(headersComplaint, {}),
  connections: integer({ default: 64, min: 1, max: 10_000 }),
  maxResponseBytes: integer({ default: 16 * 1024 * 1024, min: 1 }),
  signals: optional(stopSignals),
  logger: optional(port<Logger>(['info', 'warn'])),
  clock: optional(port<Clock>(['now', 'monotonicMs', 'setTimer'])),
  random: optional(port<Random>(['next'])),
};

const timeout = optional(integer({ min: 1 }));
const timeoutOptions = { connectMs: timeout, headersMs: timeout, bodyMs: timeout, totalMs: timeout };

const retryOptions = {
  tries: integer({ default: 3, min: 1, max: 5 }),
  baseMs: integer({ default: 200, min: 1 }),
  capMs: integer({ default: 5_000, min: 1 }),
  budget: integer({ default: 100, max: 1_000_000 }),
};

const breakerOptions = (money: boolean) => ({
  window: integer({ default: 50, min: 1, max: 100_000 }),
  failurePercent: integer({ default: money ? 30 : 50, min: 1, max: 100 }),
  minimumTries: integer({ default: 20, min: 1, max: 100_000 }),
  openMs: integer({ default: 30_000, min: 1 }),
  probes: integer({ default: 3, min: 1, max: 1_000 }),
});

const bulkheadOptions = (connections: number) => ({
  concurrent: integer({ default: connections, min: 1, max: connections }),
  queue: integer({ default: 128, max: 1_000_000 }),
  queueMs: integer({ default: 1_000, min: 1 }),
});

export type ParsedClientOptions = ReturnType<typeof parseClientOptions>;

export function parseClientOptions(options: HttpClientOptions) {
  const given = parseOptions('createHttpClient', clientOptions, options);
  const base = new URL(given.baseUrl);
  const retry = parseOptions('createHttpClient.retry', retryOptions, given.retry);
  refuseUnless(retry.baseMs <= retry.capMs, 'retry', 'baseMs must not be longer than capMs');
  const breaker = parseOptions('createHttpClient.breaker', breakerOptions(given.money), given.breaker);
  refuseUnless(breaker.minimumTries <= breaker.window, 'breaker', 'minimumTries must not be more than window');
  return {
    ...given,
    origin: base.origin,
    basePath: base.pathname.replace(/\/$/, ''),
    timeouts: timeoutsOf(parseOptions('createHttpClient.timeouts', timeoutOptions, given.timeouts)),
    retry,
    breaker,
    bulkhead: parseOptions('createHttpClient.bulkhead', bulkheadOptions(given.connections), given.bulkhead),
  };
}

type Timeouts = Readonly<Record<'connectMs' | 'headersMs' | 'bodyMs' | 'totalMs', number>>;

/** R-RES-TO: connect < headers <= body < total. */
function timeoutsOf(given: { readonly [Name in keyof Timeouts]: number | undefined }): Timeouts {
  const totalMs = given.totalMs ?? Math.max(30_000, 2 * (given.bodyMs ?? given.headersMs ?? given.connectMs ?? 0));
  const bodyMs = given.bodyMs ?? Math.max(given.headersMs ?? 0, Math.min(10_000, totalMs - 1));
  const headersMs = given.headersMs ?? Math.min(Math.max(5_000, 2 * (given.connectMs ?? 0)), bodyMs);
  const connectMs = given.connectMs ?? Math.max(1, Math.min(1_000, headersMs - 1));
  const ordered = connectMs < headersMs && headersMs <= bodyMs && bodyMs < totalMs;
  // A total of a few milliseconds leaves no room for the order.
  refuseUnless(ordered || totalMs < 4, 'timeouts', 'connectMs < headersMs <= bodyMs < totalMs must hold');
  return { connectMs, headersMs, bodyMs, totalMs };
}

function refuseUnless(holds: boolean, group: string, rule: string): void {
  if (!holds) throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `createHttpClient.${group}: ${rule}` });
}
