import { pause, type Clock } from '../ports/clock.js';

/** Of what is left behind the deadline, less the farewell. */
const SHARE = 0.8;
const LOOK_EVERY_MS = 25;

/**
 * Handlers have been told by now that their time is over. Those that listen answer, perhaps with a 503 and everything
 * rolled back, and an answer is better than a connection that breaks.
 */
export async function lastWords(options: {
  readonly clock: Clock;
  readonly inFlight: () => number;
  readonly lastsMs: number;
}): Promise<void> {
  const { clock, inFlight, lastsMs } = options;
  const untilMs = clock.monotonicMs() + Math.max(0, lastsMs) * SHARE;
  while (inFlight() > 0 && clock.monotonicMs() < untilMs) await pause(clock, LOOK_EVERY_MS);
}

/** Whether requests were in flight when the deadline came, whatever has become of them since. */
export function requestsAtDeadline(deadline: AbortSignal, inFlight: () => number): () => boolean {
  let some = false;
  const look = (): void => {
    some = inFlight() > 0;
  };
  if (deadline.aborted) look();
  else deadline.addEventListener('abort', look, { once: true });
  return () => some;
}
