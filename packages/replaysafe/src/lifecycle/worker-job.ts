import { type Logger } from '../ports/logger.js';
import { type SqlPort } from '../ports/sql.js';
import { type HeldLease } from './lease.js';

/** What each run of a worker is given. */
export interface RunContext {
  /** Start nothing new: look between two pieces of work. Aborts when the stop begins, and interrupts nothing. */
  readonly stopping: AbortSignal;
  /** Abort now. The only one of the two that belongs into a critical section (R-SHUT-SCHED-2). */
  readonly deadline: AbortSignal;
  /** The lifecycle's, with the worker's name in every line. */
  readonly logger: Logger;
}

/** What each run of a worker with the option `lease` is given. */
export interface LeasedRunContext<Tx = unknown> extends RunContext {
  readonly lease: HeldLease<Tx>;
}

/**
 * A schedule: the first moment after `from`, or null when there is none any more. `new Cron('0 3 * * *', { paused: true })`
 * of croner is one; of other libraries a function makes one.
 */
export type CronSchedule = { nextRun(from: Date): Date | null } | ((from: Date) => Date | null);

/** Either one: so long from the end of a run to the start of the next, or the moments of a schedule. */
export type WorkerPace =
  | { readonly everyMs: number; readonly cron?: undefined }
  | { readonly cron: CronSchedule; readonly everyMs?: undefined };

/** Work done again and again. A `PeriodicJob` of another room is one. */
export type WorkerJob<Context extends RunContext = RunContext> = WorkerPace & {
  /** In logs, in the report of the stop, and of the lease: not empty, one of a kind. */
  readonly name: string;
  /** A run that rejects is logged and tried again; it never ends the worker. */
  run(context: Context): Promise<void>;
};

/** One over all processes that share a database and a worker's name. */
export interface LeaseOptions<Tx = unknown> {
  readonly sql: SqlPort<Tx>;
  /**
   * How long a process may be silent before another takes its run over, in milliseconds: dead, frozen, or cut off from the database. Renewed
   * at each third. Default 30,000, at least 100.
   */
  readonly leaseMs?: number;
  /** Schema of the library's tables. Default `replaysafe`. */
  readonly schema?: string;
}

export interface WorkerOptions {
  readonly usedBy?: readonly string[];
  /**
   * Most runs at once. Default 1: the next run waits for the one before. More, at most 16, and the time is counted from start to
   * start; each of them will want a connection of the pool at the same time, of which `pg` opens 10. Not with `lease`.
   */
  readonly overlap?: number;
  /**
   * `now`: as soon as the service has started. `later`: an interval later, or at the schedule's first moment. Default `now` with
   * `everyMs`, `later` with `cron`. With `lease` it is about the first run of all processes, and `now` is not for `cron`.
   */
  readonly firstRun?: 'now' | 'later';
  /**
   * Share of the wait by which runs are spread, so that processes started together do not work in step. From 0 to 0.5. Default 0.1
   * with `everyMs` (± 10 %), 0 with `cron` (only later, by a share of the time to the moment after).
   */
  readonly jitter?: number;
  readonly lease?: undefined;
}

export interface LeasedWorkerOptions<Tx> extends Omit<WorkerOptions, 'lease' | 'overlap'> {
  readonly overlap?: undefined;
  readonly lease: LeaseOptions<Tx>;
}
