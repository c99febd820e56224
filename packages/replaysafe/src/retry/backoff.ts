import type { Random } from '../ports/random.js';

export interface BackoffOptions {
  /** 1 for the wait after the first failure. */
  readonly attempt: number;
  /** Upper bound of the first wait, in milliseconds; it doubles with each attempt. */
  readonly baseMs: number;
  /** Upper bound of every wait, in milliseconds. */
  readonly capMs: number;
  readonly random: Random;
}

/**
 * Exponential back-off with full jitter: a random whole number of milliseconds from 0 to the bound. Without jitter, clients that
 * failed together come back together.
 */
export function backoffDelay({ attempt, baseMs, capMs, random }: BackoffOptions): number {
  const bound = Math.min(capMs, baseMs * 2 ** Math.min(Math.max(0, attempt - 1), 52));
  return Math.floor(random.next() * (bound + 1));
}
