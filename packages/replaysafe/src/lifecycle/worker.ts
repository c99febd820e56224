import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Random } from '../ports/random.js';
import { type PeriodicJob, type StopSignals } from '../ports/stop.js';

export interface WorkerOptions {
  readonly job: PeriodicJob;
  readonly signals: StopSignals;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Worker {
  /** Begins the loop; a second call, or one after the stop began, does nothing. */
  start(): void;
  /** Resolves when the running iteration has ended. The loop itself is ended by `signals.stopping`. */
  ended(): Promise<void>;
}

/** Share of the pause by which runs are spread, so that instances started together do not work in step for ever. */
const JITTER = 0.1;
const LONGEST_BACKOFF_MS = 60_000;

/**
 * Runs a job again and again until the stop: looks before each run whether to stop, never overlaps runs, and lets a
 * running one finish (R-SHUT-SCHED-1). A run that fails makes the next one wait longer; it never ends the loop.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { job, signals, clock, random, logger } = options;
  let loop: Promise<void> | undefined;

  const runOnce = async (): Promise<unknown> => {
    const startedAtMs = clock.monotonicMs();
    let error: unknown;
    try {
      await job.run({ stopping: signals.stopping, deadline: signals.deadline });
    } catch (thrown) {
      error = thrown ?? new Error('the run threw nothing');
    }
    emit('lifecycle.worker-ran', { worker: job.name, durationMs: clock.monotonicMs() - startedAtMs, error });
    return error;
  };

  const runUntilStopped = async (): Promise<void> => {
    let failures = 0;
    await pause(clock, firstDelayMs(job.everyMs, random), signals.stopping);
    while (!signals.stopping.aborted) {
      const error = await runOnce();
      failures = error === undefined ? 0 : failures + 1;
      const delayMs = nextDelayMs(job.everyMs, failures, random);
      if (error !== undefined) {
        logger.warn(
          { err: error, worker: job.name, failures, nextRunInMs: Math.round(delayMs) },
          'worker run failed; it will run again',
        );
      }
      await pause(clock, delayMs, signals.stopping);
    }
  };

  return {
    start: () => {
      if (!signals.stopping.aborted) loop ??= runUntilStopped();
    },
    ended: async () => {
      await loop;
    },
  };
}

function firstDelayMs(everyMs: number, random: Random): number {
  return everyMs * JITTER * random.next();
}

/** Doubles with each failure in a row, up to a minute or the job's own interval, whichever is longer; ± 10 %. */
export function nextDelayMs(everyMs: number, failures: number, random: Random): number {
  const longest = Math.max(everyMs, LONGEST_BACKOFF_MS);
  const base = Math.min(longest, Math.max(everyMs, failures > 0 ? 100 : 0) * 2 ** Math.min(failures, 30));
  return base * (1 - JITTER + 2 * JITTER * random.next());
}
