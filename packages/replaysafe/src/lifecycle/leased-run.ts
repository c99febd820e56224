import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Random } from '../ports/random.js';
import { type StopSignals } from '../ports/stop.js';
import { keepLease, type HeldLease } from './lease.js';
import { type Turn } from './lease-states.js';
import { type LeaseStore } from './lease-store.js';
import { nextDelayMs } from './worker-timetable.js';

export interface LeasedRunOptions {
  readonly store: LeaseStore<unknown>;
  readonly worker: string;
  readonly leaseMs: number;
  readonly jitter: number;
  /** Undefined for a schedule: a run that failed waits for the next moment. */
  readonly everyMs: number | undefined;
  readonly firstRun: 'now' | 'later';
  /** Runs the job; resolves with what it threw. */
  readonly run: (lease: HeldLease) => Promise<unknown>;
  readonly signals: StopSignals;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What became of a turn: to be tried again after a wait, or over for this process. */
export type TurnOutcome = { readonly kind: 'wait'; readonly waitMs: number } | { readonly kind: 'over' };

/** The longest wait between two looks: somebody may have changed the row by hand. */
const LONGEST_LOOK_MS = 60_000;
const RELEASE_RETRY_MS = 100;

/** Takes a worker's turns in the name of all processes: claims the lease, runs, gives it back. Never rejects. */
export function createLeasedRun(options: LeasedRunOptions): (turn: Turn) => Promise<TurnOutcome> {
  const { store, worker, leaseMs, jitter, everyMs, run, signals, clock, random, logger } = options;
  let refusals = 0;
  let postponed = options.firstRun === 'now' || everyMs === undefined;

  /** As often as it takes: what is not written is run again by another process. */
  const release = async (epoch: bigint, failures: number, live: () => boolean): Promise<void> => {
    const backOffMs =
      failures > 0 && everyMs !== undefined ? nextDelayMs(everyMs, failures, random, jitter) : undefined;
    for (let tries = 0; ; tries++) {
      try {
        // Not found at a second try may as well be the first one, whose answer was lost.
        if (!(await store.release(epoch, failures, backOffMs)) && tries === 0) {
          logger.warn({ worker, epoch: String(epoch) }, 'a run ended after its lease was taken over; it is run again');
        }
        return;
      } catch (error) {
        if (!live() || signals.deadline.aborted) {
          logger.warn({ worker, err: error }, 'the end of a run could not be noted; it is run again');
          return;
        }
        await pause(clock, RELEASE_RETRY_MS * 2 ** Math.min(tries, 5), signals.deadline);
      }
    }
  };

  const claimAndRun = async (turn: Turn): Promise<TurnOutcome> => {
    if (!postponed && everyMs !== undefined) {
      await store.postpone(everyMs);
      postponed = true;
    }
    const claimedAtMs = clock.monotonicMs();
    const claim = await store.claim(turn);
    refusals = 0;
    if (claim.kind === 'done') return { kind: 'over' };
    if (claim.kind === 'wait') {
      const waitMs = claim.waitMs * (1 + jitter * random.next());
      return { kind: 'wait', waitMs: Math.max(1, Math.min(waitMs, LONGEST_LOOK_MS)) };
    }
    const { epoch, takenFrom } = claim;
    if (signals.stopping.aborted) {
      // Not begun: whoever comes next may have it at once, as if it had been interrupted.
      await store.surrender(epoch);
      return { kind: 'over' };
    }
    emit('lifecycle.lease-taken', { worker, epoch, takenOver: takenFrom !== undefined });
    if (takenFrom !== undefined) {
      logger.info({ worker, epoch: String(epoch), takenFrom }, 'a run that was begun and not ended is run again');
    }
    const keeper = keepLease({ store, worker, epoch, leaseMs, claimedAtMs, clock, logger, deadline: signals.deadline });
    const error = await run(keeper.lease);
    await keeper.end();
    await release(epoch, error === undefined ? 0 : claim.failures + 1, keeper.live);
    return { kind: 'over' };
  };

  return async (turn) => {
    try {
      return await claimAndRun(turn);
    } catch (error) {
      const waitMs = nextDelayMs(100, refusals++, random);
      logger.warn({ worker, err: error, nextTryInMs: Math.round(waitMs) }, 'a worker could not ask for its lease');
      return { kind: 'wait', waitMs };
    }
  };
}
