import { setMaxListeners } from 'node:events';
import { type Clock, type Timer } from '../ports/clock.js';
import { type StopSignals } from '../ports/stop.js';
import { type Budget } from './budget.js';
import { settleTime } from './step.js';

/** The phases that take in or do work, and so listen to signals. */
export type UserPhase = 'http' | 'work' | 'consumers';

export interface StopSignalSources {
  readonly of: Readonly<Record<UserPhase, StopSignals>>;
  readonly shared: StopSignals;
  /** Aborts `stopping` now and each `deadline` at its time. */
  stop(budget: Budget): void;
  /** The work has ended: deadlines that have not come will not. */
  release(): void;
}

// A step must have seen its own deadline when what it waits for ends because of this one.
const BEHIND_THE_STEP_MS = 10;

export function createStopSignals(clock: Clock, budget: Budget): StopSignalSources {
  const stopping = new AbortController();
  const deadlines = {
    http: new AbortController(),
    work: new AbortController(),
    consumers: new AbortController(),
    shared: new AbortController(),
  };
  // Every request and every call under way listens to these; Node would take the eleventh for a leak.
  setMaxListeners(0, stopping.signal, ...Object.values(deadlines).map(({ signal }) => signal));
  const timers: Timer[] = [];

  const signals = (deadline: AbortController, budgetMs: number): StopSignals => ({
    stopping: stopping.signal,
    deadline: deadline.signal,
    budgetMs,
  });
  const { http, work, consumers } = budget.endsMs;

  return {
    of: {
      http: signals(deadlines.http, http),
      work: signals(deadlines.work, work),
      consumers: signals(deadlines.consumers, consumers),
    },
    shared: signals(deadlines.shared, Math.min(http, work, consumers)),
    stop: (inTime) => {
      const endsMs = { ...inTime.endsMs, shared: inTime.usersEndMs };
      for (const phase of ['http', 'work', 'consumers', 'shared'] as const) {
        // The drain's step begins behind the lame duck, and so does the time that it divides.
        const beginsMs = phase === 'http' ? inTime.lameDuckMs : 0;
        const afterMs = endsMs[phase] - settleTime(endsMs[phase] - beginsMs) + BEHIND_THE_STEP_MS;
        timers.push(
          clock.setTimer(
            afterMs,
            () => {
              deadlines[phase].abort(new Error(`the ${phase} phase of the stop has reached its deadline`));
            },
            { keepAlive: false },
          ),
        );
      }
      stopping.abort(new Error('the service is stopping'));
    },
    release: () => {
      for (const timer of timers) timer.cancel();
    },
  };
}
