import type { Clock, Timer } from '../ports/clock.js';

/** A clock that stands still until it is told to move. */
export interface FakeClock extends Clock {
  /**
   * Moves on by so many milliseconds. Timers fire in the order of their moments (of those of one moment, the one set first),
   * those included that are set meanwhile, and after each one the promises it settled run to their next wait. Rejects with what a
   * timer throws.
   */
  advance(ms: number): Promise<void>;
  /** Timers that are set and have neither fired nor been cancelled. */
  readonly pendingTimers: number;
}

export interface FakeClockOptions {
  /** Milliseconds since the epoch at the beginning. Default: 2026-01-01T00:00:00Z. */
  readonly now?: number;
}

interface Pending {
  readonly at: number;
  readonly fire: () => void;
}

/** Several turns, since a settled promise may go through I/O-free steps of the event loop before it sets its next timer. */
const TURNS = 3;

export function createFakeClock(options: FakeClockOptions = {}): FakeClock {
  const startedAt = options.now ?? Date.UTC(2026, 0, 1);
  const pending = new Set<Pending>();
  let elapsed = 0;

  return {
    now: () => startedAt + elapsed,
    monotonicMs: () => elapsed,

    setTimer: (delayMs, fire): Timer => {
      const timer = { at: elapsed + Math.max(0, delayMs), fire };
      pending.add(timer);
      return {
        cancel: () => {
          pending.delete(timer);
        },
      };
    },

    get pendingTimers() {
      return pending.size;
    },

    advance: async (ms) => {
      const target = elapsed + ms;
      await settle();
      for (let next = earliest(pending, target); next; next = earliest(pending, target)) {
        pending.delete(next);
        elapsed = next.at;
        next.fire();
        await settle();
      }
      elapsed = target;
    },
  };
}

/** The first timer due by `until`; of those with the same moment the one set first, as a set keeps its order. */
function earliest(pending: ReadonlySet<Pending>, until: number): Pending | undefined {
  let first: Pending | undefined;
  for (const timer of pending) if (timer.at <= until && (!first || timer.at < first.at)) first = timer;
  return first;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
}
