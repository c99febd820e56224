import { ReplaysafeError, type ErrorCode } from '../errors.js';
import type { Clock, Timer } from '../ports/clock.js';

export interface Lateness {
  readonly signal: AbortSignal;
  /** From now on `delayMs` may pass, and no more: the phase before is over. */
  after(delayMs: number, code: ErrorCode): void;
  /** What the signal says after that. */
  error(delayMs: number, code: ErrorCode): ReplaysafeError;
  cancel(): void;
}

/** The limit of the phase that a run is in. No wait of it is without one: a server may hang without closing anything. */
export function lateness(clock: Clock): Lateness {
  const controller = new AbortController();
  const error = (delayMs: number, code: ErrorCode): ReplaysafeError =>
    new ReplaysafeError(code, { detail: `not within ${delayMs} ms` });
  let timer: Timer | undefined;
  return {
    signal: controller.signal,
    after: (delayMs, code) => {
      timer?.cancel();
      timer = clock.setTimer(delayMs, () => {
        controller.abort(error(delayMs, code));
      });
    },
    error,
    cancel: () => timer?.cancel(),
  };
}
