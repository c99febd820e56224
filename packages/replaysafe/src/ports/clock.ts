export interface Timer {
  cancel(): void;
}

/**
 * Time as the rooms see it. Durations are measured with `monotonicMs`, which no clock change moves; `now` is for logs
 * and for the `Date` of a response. Leases and due times are never judged by either: the database's clock does that.
 */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some fixed moment; never goes backwards. */
  monotonicMs(): number;
  /** Calls `fire` once, after `delayMs`. Delays over 2^31 - 1 ms are cut to it: a longer one would fire at once. */
  setTimer(delayMs: number, fire: () => void, options?: { readonly keepAlive?: boolean }): Timer;
}

const LONGEST_TIMER_MS = 2_147_483_647;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fire, options) => {
    const timer = setTimeout(fire, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS));
    if (options?.keepAlive === false) timer.unref();
    return {
      cancel: () => {
        clearTimeout(timer);
      },
    };
  },
};

/** Waits `delayMs`, or until the signal aborts: resolves in both cases, in the same tick as the abort. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      timer.cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(delayMs, wake);
    signal?.addEventListener('abort', wake, { once: true });
  });
}

export interface DeadlineSignal {
  readonly signal: AbortSignal;
  /** Frees the timer. The signal does not abort any more, unless its parent does. */
  dispose(): void;
}

/** A signal that aborts after `delayMs`, or as soon as the parent does. */
export function deadlineAfter(clock: Clock, delayMs: number, parent?: AbortSignal): DeadlineSignal {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(parent?.aborted ? parent.reason : new Error(`deadline of ${String(delayMs)} ms reached`));
  };
  const timer = clock.setTimer(delayMs, abort, { keepAlive: false });
  if (parent?.aborted) abort();
  else parent?.addEventListener('abort', abort, { once: true });
  return {
    signal: controller.signal,
    dispose: () => {
      timer.cancel();
      parent?.removeEventListener('abort', abort);
    },
  };
}
