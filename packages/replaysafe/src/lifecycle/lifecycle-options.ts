import { boolean, custom, integer, optional, port, text } from '../options.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { BUDGET_OPTIONS } from './budget.js';
import { stderrLogger } from './stderr-logger.js';

/** The options of `createLifecycle`; the times of its budget are described at {@link BUDGET_OPTIONS}. */
export interface LifecycleOptions {
  /** For logs and the report. Default `service`. */
  readonly name?: string;
  /** From the order to stop to the SIGKILL, e.g. `terminationGracePeriodSeconds` × 1000. Default 60 s. */
  readonly graceMs?: number;
  /** What a pre-stop hook uses of it before the signal arrives. Default 0. */
  readonly preStopMs?: number;
  /** Default 2 s. */
  readonly lameDuckMs?: number;
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
