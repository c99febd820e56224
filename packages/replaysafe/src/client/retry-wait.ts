import type { Random } from '../ports/random.js';
import { backoffDelay } from '../retry/backoff.js';

export interface RetryWaitOptions {
  readonly baseMs: number;
  readonly capMs: number;
  readonly random: Random;
}

/** Added to a wait that the other side asks for, so that those who were told the same do not come back together. */
const SPREAD = 0.2;

/**
 * How long to wait before the next try, in whole milliseconds: with full jitter, and at least what the other side asked for.
 * @returns undefined where that does not fit into `leftMs`, what is left of the whole call
 */
export function retryWait(
  attempt: number,
  askedMs: number,
  leftMs: number,
  { baseMs, capMs, random }: RetryWaitOptions,
): number | undefined {
  if (askedMs >= leftMs) return undefined;
  const jittered = backoffDelay({ attempt, baseMs, capMs, random });
  const spread = Math.min(askedMs * (1 + SPREAD * random.next()), leftMs - 1);
  const wait = Math.floor(Math.max(askedMs, spread, jittered));
  return wait < leftMs ? wait : undefined;
}
