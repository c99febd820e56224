import { custom, integer, optional, parseOptions, port, text } from '../options.js';
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
   * `bodyMs` (10,000) between two pieces of its body, `totalMs` (30,000) for the whole call with all tries and waits. The
   * connection pool looks at `headersMs` and `bodyMs` about once a second; `totalMs` is exact.
   */
  readonly timeouts?: {
    readonly connectMs?: number;
    readonly headersMs?: number;
    readonly bodyMs?: number;
    readonly totalMs?: number;
  };
  /** `tries` (3, at most 5) in all; waits of full jitter up to `baseMs` (200), doubling up to `capMs` (5,000). */
  readonly retry?: { readonly tries?: number; readonly baseMs?: number; readonly capMs?: number };
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
  headers: custom<Readonly<Record<string, string>>>(headersComplaint, {}),
  connections: integer({ default: 64, min: 1, max: 10_000 }),
  maxResponseBytes: integer({ default: 16 * 1024 * 1024, min: 1 }),
  signals: optional(stopSignals),
  logger: optional(port<Logger>(['info'])),
  clock: optional(port<Clock>(['now', 'monotonicMs', 'setTimer'])),
  random: optional(port<Random>(['next'])),
};

const timeoutOptions = {
  connectMs: integer({ default: 1_000, min: 1 }),
  headersMs: integer({ default: 5_000, min: 1 }),
  bodyMs: integer({ default: 10_000, min: 1 }),
  totalMs: integer({ default: 30_000, min: 1 }),
};

const retryOptions = {
  tries: integer({ default: 3, min: 1, max: 5 }),
  baseMs: integer({ default: 200, min: 1 }),
  capMs: integer({ default: 5_000, min: 1 }),
};

export function parseClientOptions(options: HttpClientOptions) {
  const given = parseOptions('createHttpClient', clientOptions, options);
  const base = new URL(given.baseUrl);
  return {
    ...given,
    origin: base.origin,
    basePath: base.pathname.replace(/\/$/, ''),
    timeouts: parseOptions('createHttpClient.timeouts', timeoutOptions, given.timeouts),
    retry: parseOptions('createHttpClient.retry', retryOptions, given.retry),
  };
}
