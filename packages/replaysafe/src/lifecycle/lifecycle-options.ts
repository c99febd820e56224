import { boolean, custom, integer, oneOf, optional, port, text } from '../options.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { BUDGET_OPTIONS } from './budget.js';
import { type ConnectionClose, type LateRequests } from './http-drain.js';
import { stderrLogger } from './stderr-logger.js';

/** The options of `createLifecycle`; the times of its budget are described at {@link BUDGET_OPTIONS}. */
export interface LifecycleOptions {
  /** For logs and the report. Default `service`. */
  readonly name?: string;
  /** From the order to stop to the SIGKILL, e.g. `terminationGracePeriodSeconds` × 1000. Default 60 s. */
  readonly graceMs?: number;
  /**
   * What a pre-stop hook that only sleeps uses of it before the signal arrives; the process hears nothing of it. Leave it 0
   * where the hook calls `/-/prestop`: then the stop begins with the hook. Default 0.
   */
  readonly preStopMs?: number;
  /** Default 2 s. */
  readonly lameDuckMs?: number;
  /**
   * How long balancers may go on sending requests after the stop began. The lame duck is at least that long, and
   * `/-/prestop` is answered behind it. Default 0.
   */
  readonly propagationDelayMs?: number;
  /**
   * `all`: every response of the lame duck says `Connection: close`. `ramp`: a share that grows from none to all, for
   * clients that would otherwise come back to the same process at once. Default `all`.
   */
  readonly connectionClose?: ConnectionClose;
  /**
   * `serve`: requests that begin after the lame duck are served until the line is quiet. `refuse`: they are answered 503 with
   * `Retry-After`, their bodies read first. HTTP/2 streams are served in both cases. Default `serve`.
   */
  readonly lateRequests?: LateRequests;
  /** Default 25 s. */
  readonly httpDrainMs?: number;
  /** Default 20 s. */
  readonly workMs?: number;
  /** Default 15 s. */
  readonly consumersMs?: number;
  /** Default 10 s. */
  readonly producersMs?: number;
  /** Default 2 s. */
  readonly poolReserveMs?: number;
  /** Default 2 s. */
  readonly exitMarginMs?: number;
  /** Default 10 s. */
  readonly crashMs?: number;
  /** Silence on the HTTP connections before any is closed from our side. Default 500 ms. */
  readonly quietMs?: number;
  /** How long a connection is still read after our FIN. Default 200 ms. */
  readonly lingerMs?: number;
  /** How long the outcome of a readiness check is used again. Default 1 s. */
  readonly checkCacheMs?: number;
  /** How long a readiness check may take. Default 2 s. */
  readonly checkTimeoutMs?: number;
  /** Default: warnings and errors go to stderr, nothing else is written. */
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

export const LIFECYCLE_OPTIONS = {
  ...BUDGET_OPTIONS,
  name: text({ default: 'service' }),
  connectionClose: oneOf(['all', 'ramp'], 'all'),
  lateRequests: oneOf(['serve', 'refuse'], 'serve'),
  quietMs: integer({ default: 500 }),
  lingerMs: integer({ default: 200 }),
  checkCacheMs: integer({ default: 1_000 }),
  checkTimeoutMs: integer({ default: 2_000, min: 1 }),
  logger: port<Logger>(['debug', 'info', 'warn', 'error'], stderrLogger),
  clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
  random: port<Random>(['next'], systemRandom),
} as const;

const usedBy = custom<readonly string[]>(
  (given) =>
    Array.isArray(given) && given.every((name) => typeof name === 'string') ? undefined : 'must be a list of names',
  [],
);

/** The options of `lifecycle.server()`. */
export const SERVER_OPTIONS = { name: optional(text()), usedBy, management: boolean(false) } as const;
