import type { Random } from '../ports/random.js';
import { backoffDelay } from './backoff.js';

/** How an iteration of the relay ended. `refused`: rows were claimed and the broker took none, for no fault of theirs. */
export type IterationEnd = 'full' | 'partial' | 'empty' | 'refused' | 'errored';

/** What the loop remembers between its iterations. */
export interface Pace {
  readonly waitMs: number;
  /** A hint that there is work ends the wait: true while idle; a back-off is not cut short. */
  readonly wakeable: boolean;
  /** Iterations in a row that were refused or errored. */
  readonly troubles: number;
  /** The broker takes nothing: try it with a few rows, so that an outage does not touch the whole backlog. */
  readonly probing: boolean;
}

export interface PaceOptions {
  readonly pollBusyMs: number;
  readonly pollIdleMs: number;
  readonly baseMs: number;
  readonly capMs: number;
  readonly random: Random;
}

/** An outage is noticed to have ended within this time, whatever the cap of the rows' own back-off. */
const TROUBLE_CAP_MS = 5_000;

export const FIRST_PACE: Pace = { waitMs: 0, wakeable: false, troubles: 0, probing: false };

/** Polling is the truth: often while there is work, ever less often up to `pollIdleMs` while there is none. */
export function nextPace(before: Pace, end: IterationEnd, options: PaceOptions): Pace {
  const calm = { troubles: 0, probing: false };
  switch (end) {
    case 'full':
      return { ...calm, waitMs: 0, wakeable: false };
    case 'partial':
      return { ...calm, waitMs: options.pollBusyMs, wakeable: true };
    case 'empty': {
      const waitMs = Math.min(
        options.pollIdleMs,
        Math.max(options.pollBusyMs, before.wakeable ? before.waitMs * 2 : 0),
      );
      // Nothing was tried: an outage is not over because all its rows are backing off.
      return { troubles: before.troubles, probing: before.probing, waitMs, wakeable: true };
    }
    case 'refused':
    case 'errored': {
      const troubles = before.troubles + 1;
      const capMs = Math.min(options.capMs, TROUBLE_CAP_MS);
      const delayMs = backoffDelay({ attempt: troubles, baseMs: options.baseMs, capMs, random: options.random });
      return {
        troubles,
        probing: before.probing || end === 'refused',
        // Full jitter may say 0; a loop that fails must not spin.
        waitMs: Math.max(options.pollBusyMs, delayMs),
        wakeable: false,
      };
    }
  }
}
