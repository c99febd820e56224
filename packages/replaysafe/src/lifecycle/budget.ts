import { ReplaysafeError } from '../errors.js';
import { integer, type ParsedOptions } from '../options.js';
import { type Phase } from './phases.js';

/** The time options of `createLifecycle`, all in milliseconds. */
export const BUDGET_OPTIONS = {
  /** From the order to stop to the SIGKILL: `terminationGracePeriodSeconds`. The pre-stop hook runs inside it. */
  graceMs: integer({ default: 60_000, min: 1 }),
  /** What a pre-stop hook that sleeps uses up before the signal arrives; one that calls `/-/prestop` uses up nothing. */
  preStopMs: integer({ default: 0 }),
  /** Requests are served as before while readiness already says 503 and responses say `Connection: close`. */
  lameDuckMs: integer({ default: 2_000 }),
  /** How long balancers may still send requests after the stop began: the lame duck is at least that long. */
  propagationDelayMs: integer({ default: 0 }),
  /** From the end of the lame duck to the last answer. */
  httpDrainMs: integer({ default: 25_000, min: 1 }),
  /** Workers and relays, from the first moment of the stop. */
  workMs: integer({ default: 20_000, min: 1 }),
  /** Consumers, from the first moment of the stop. */
  consumersMs: integer({ default: 15_000, min: 1 }),
  /** Producers, from the latest end of all that send through them. */
  producersMs: integer({ default: 10_000 }),
  /** Kept for closing pools, whatever came before; time lost earlier never shortens it. */
  poolReserveMs: integer({ default: 2_000 }),
  /** Between our own forced exit and the SIGKILL. */
  exitMarginMs: integer({ default: 2_000, min: 1 }),
  /** The whole stop after an uncaught exception, when the state of the process cannot be trusted for long. */
  crashMs: integer({ default: 10_000, min: 1 }),
} as const;

export type BudgetOptions = ParsedOptions<typeof BUDGET_OPTIONS>;

/** Absolute ends, in milliseconds after the stop began. */
export interface Budget {
  readonly lameDuckMs: number;
  readonly endsMs: Readonly<Record<Phase, number>>;
  /** The latest end of HTTP, work and consumers: from then on nothing uses what is closed next. */
  readonly usersEndMs: number;
  /** The end of the last phase. */
  readonly totalMs: number;
  /** When the process leaves even if the stop itself is stuck. */
  readonly forcedExitMs: number;
  /** When the watchdog kills a process whose event loop is blocked, so that not even the forced exit can happen. */
  readonly watchdogMs: number;
  /** The forced exit after an uncaught error, counted from that error. */
  readonly crashExitMs: number;
}

/**
 * Lays the phases out on absolute deadlines. Time saved early is there for what follows; time lost early shortens it, but
 * never the pools' reserve.
 *
 * @throws RS_LIFECYCLE_BUDGET with the arithmetic, where the phases that follow one another do not fit (R-SHUT-2, R-SHUT-OBS-1)
 */
export function planBudget(options: BudgetOptions): Budget {
  const { httpDrainMs, workMs, consumersMs, producersMs, poolReserveMs } = options;
  const lameDuckMs = lameDuck(options);
  const usersEndMs = Math.max(lameDuckMs + httpDrainMs, workMs, consumersMs);
  const needed = options.preStopMs + usersEndMs + producersMs + poolReserveMs + options.exitMarginMs;
  if (needed > options.graceMs)
    throw new ReplaysafeError('RS_LIFECYCLE_BUDGET', { detail: arithmetic(options, needed) });

  const totalMs = options.graceMs - options.preStopMs - options.exitMarginMs;
  return {
    lameDuckMs,
    usersEndMs,
    totalMs,
    // Later than the last phase, so that a stop that ends in time always ends by itself.
    forcedExitMs: totalMs + Math.min(500, options.exitMarginMs / 4),
    watchdogMs: totalMs + options.exitMarginMs / 2,
    crashExitMs: Math.min(options.crashMs, totalMs) + Math.min(500, options.exitMarginMs / 4),
    endsMs: {
      http: lameDuckMs + httpDrainMs,
      work: workMs,
      consumers: consumersMs,
      producers: usersEndMs + producersMs,
      pools: totalMs,
      management: totalMs,
    },
  };
}

/** The same stop in at most `crashMs`: no lame duck, everything before the pools shortened alike, their reserve kept. */
export function crashBudget(budget: Budget, options: BudgetOptions): Budget {
  const totalMs = Math.min(options.crashMs, budget.totalMs);
  const reserveMs = Math.min(options.poolReserveMs, totalMs / 2);
  const scale = Math.min(1, (totalMs - reserveMs) / budget.endsMs.producers);
  const scaled = (ms: number): number => Math.floor(ms * scale);
  return {
    lameDuckMs: 0,
    usersEndMs: scaled(budget.usersEndMs),
    totalMs,
    forcedExitMs: totalMs + (budget.forcedExitMs - budget.totalMs),
    watchdogMs: totalMs + (budget.watchdogMs - budget.totalMs),
    crashExitMs: budget.crashExitMs,
    endsMs: {
      http: scaled(budget.endsMs.http),
      work: scaled(budget.endsMs.work),
      consumers: scaled(budget.endsMs.consumers),
      producers: scaled(budget.endsMs.producers),
      pools: totalMs,
      management: totalMs,
    },
  };
}

function lameDuck({ lameDuckMs, propagationDelayMs }: BudgetOptions): number {
  return Math.max(lameDuckMs, propagationDelayMs);
}

function arithmetic(options: BudgetOptions, needed: number): string {
  const http = lameDuck(options) + options.httpDrainMs;
  const { lameDuckMs, propagationDelayMs } = options;
  const before =
    propagationDelayMs > lameDuckMs
      ? `propagationDelayMs ${propagationDelayMs} (longer than the lame duck ${lameDuckMs})`
      : `lame duck ${lameDuckMs}`;
  const longest = Math.max(http, options.workMs, options.consumersMs);
  const sideBySide =
    `the longest of ${before} + HTTP ${options.httpDrainMs} = ${http}, work ${options.workMs} ` +
    `and consumers ${options.consumersMs}, which run side by side: ${longest}`;
  return (
    `preStopMs ${options.preStopMs} + ${longest} (${sideBySide}) + producersMs ${options.producersMs} + ` +
    `poolReserveMs ${options.poolReserveMs} + exitMarginMs ${options.exitMarginMs} = ${needed} ms, ` +
    `${needed - options.graceMs} ms more than graceMs ${options.graceMs}; cut the work into smaller pieces`
  );
}
