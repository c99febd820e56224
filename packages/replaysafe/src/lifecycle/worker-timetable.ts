import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Random } from '../ports/random.js';
import { type NextMoment } from './worker-options.js';

/** Says when a worker's next run is due. */
export interface Timetable {
  /** Waits until it is. False: the stop has begun, or there are no more runs. */
  next(): Promise<boolean>;
  /** The moment of the schedule that is due, in milliseconds since the epoch. */
  readonly slotMs: number | undefined;
}

interface Waiting {
  readonly jitter: number;
  readonly firstRun: 'now' | 'later';
  readonly clock: Clock;
  readonly random: Random;
  readonly stopping: AbortSignal;
}

const LONGEST_BACKOFF_MS = 60_000;
/** `now` is at most so much later, however long the interval is. */
const FIRST_SPREAD_MS = 1_000;
/** A wait for a moment of the wall clock is cut into pieces of this length, so that a change of the clock is noticed. */
const LONGEST_SLICE_MS = 60_000;
/** A wall clock that far behind the last moment that was run was wrong then and has been put right since. */
const CORRECTED_MS = 86_400_000;

/** Doubles with each failure in a row, up to a minute or the job's own interval, whichever is longer; spread by the jitter. */
export function nextDelayMs(everyMs: number, failures: number, random: Random, jitter = 0.1): number {
  const longest = Math.max(everyMs, LONGEST_BACKOFF_MS);
  const base = Math.min(longest, Math.max(everyMs, failures > 0 ? 100 : 0) * 2 ** Math.min(failures, 30));
  return base * (1 - jitter + 2 * jitter * random.next());
}

/** By the monotonic clock. `failures` are those in a row until now. */
export function intervalTimetable(
  options: Waiting & { readonly everyMs: number; readonly failures: () => number },
): Timetable {
  const { everyMs, failures, jitter, firstRun, clock, random, stopping } = options;
  let first = true;
  return {
    slotMs: undefined,
    next: async () => {
      const soon = first && firstRun === 'now';
      first = false;
      await pause(
        clock,
        soon
          ? Math.min(everyMs * jitter, FIRST_SPREAD_MS) * random.next()
          : nextDelayMs(everyMs, failures(), random, jitter),
        stopping,
      );
      return !stopping.aborted;
    },
  };
}

/**
 * By the wall clock. Each moment is run at most once, and never an earlier one after a later: a clock that is set back makes
 * the worker wait. Moments that passed during a run, or while the clock leapt over them, are one run or none, never a burst.
 */
export function cronTimetable(
  options: Waiting & { readonly nextMoment: NextMoment; readonly worker: string; readonly logger: Logger },
): Timetable {
  const { nextMoment, worker, jitter, clock, random, stopping, logger } = options;
  let afterMs = clock.now();
  let slotMs: number | undefined;
  let startsNow = options.firstRun === 'now';
  let mistakes = 0;

  /** The first moment later than the given one; null when there is none. */
  const momentAfter = (fromMs: number): number | null => {
    const moment = nextMoment(new Date(fromMs));
    if (moment === null) return null;
    const atMs = moment.getTime();
    if (atMs > fromMs) return atMs;
    throw new Error(`the schedule named ${String(moment)} as the first moment after ${new Date(fromMs).toISOString()}`);
  };

  const spreadMs = (momentMs: number): number => {
    if (jitter === 0) return 0;
    const following = momentAfter(momentMs);
    return following === null ? 0 : (following - momentMs) * jitter * random.next();
  };

  /** False when the wait ended otherwise than by reaching the moment. */
  const reach = async (atMs: number): Promise<boolean> => {
    for (;;) {
      if (stopping.aborted) return false;
      const nowMs = clock.now();
      if (nowMs >= atMs) return true;
      if (afterMs - nowMs > CORRECTED_MS) {
        logger.warn(
          { worker, lastRunFor: new Date(afterMs).toISOString() },
          'the clock was set back; the schedule begins again',
        );
        afterMs = nowMs;
        return false;
      }
      // A timer may fire a little early by the wall clock: at least 1 ms, or this would spin.
      await pause(clock, Math.max(1, Math.min(atMs - nowMs, LONGEST_SLICE_MS)), stopping);
    }
  };

  return {
    get slotMs() {
      return slotMs;
    },
    next: async () => {
      if (slotMs !== undefined) afterMs = Math.max(slotMs, clock.now());
      if (startsNow) {
        startsNow = false;
        slotMs = clock.now();
        return !stopping.aborted;
      }
      while (!stopping.aborted) {
        try {
          const momentMs = momentAfter(afterMs);
          if (momentMs === null) {
            logger.info({ worker }, 'the schedule of a worker is over; it does not run any more');
            return false;
          }
          if (await reach(momentMs + spreadMs(momentMs))) {
            slotMs = momentMs;
            return true;
          }
          mistakes = 0;
        } catch (error) {
          const delayMs = nextDelayMs(1_000, mistakes++, random);
          logger.warn({ worker, err: error }, 'a schedule failed; it is asked again');
          await pause(clock, delayMs, stopping);
        }
      }
      return false;
    },
  };
}
