/**
 * What a committed row of `processed_event` says. There is no row for an event that is still being worked on: the row is
 * written by the transaction of the effect and becomes visible with it.
 */
export const PROCESSED_STATES = ['processed', 'parked'] as const;
export type ProcessedState = (typeof PROCESSED_STATES)[number];

/** Why a run (one transaction over consecutive events of a partition) was rolled back. */
export type RunFailure =
  /**
   * The server, the network or a remote system: nobody's fault here. The same again, for as long as it takes. With a culprit
   * where only that handler meets it: what stands before it need not wait.
   */
  | { readonly kind: 'infrastructure'; readonly error: unknown; readonly culprit: number | undefined }
  /** Others' locks. The same run again, a bounded number of times; then as `handler`. */
  | { readonly kind: 'contention'; readonly error: unknown; readonly culprit: number | undefined }
  /** A handler, told by its position in the run where it could be told. */
  | { readonly kind: 'handler'; readonly error: unknown; readonly culprit: number | undefined };

/** What to do after a failed run. */
export type NextStep =
  | { readonly step: 'again' }
  /** Run what stands before the culprit, then the culprit in a transaction of its own. */
  | { readonly step: 'isolate'; readonly culprit: number }
  /** Nobody knows who it was: the first half by itself, which finds out. */
  | { readonly step: 'halve'; readonly length: number }
  /** It was alone in its transaction: an attempt is used up. */
  | { readonly step: 'count' };

export interface RunState {
  /** Events in the run. */
  readonly length: number;
  /** Failures in a row by contention, this one included. */
  readonly contentions: number;
  readonly maxContentions: number;
}

/** An attempt is only ever counted against an event that was alone in its transaction: a neighbour is never blamed. */
export function afterFailure(failure: RunFailure, run: RunState): NextStep {
  if (failure.kind === 'infrastructure') {
    const isolate = failure.culprit !== undefined && run.length > 1;
    return isolate ? { step: 'isolate', culprit: failure.culprit } : { step: 'again' };
  }
  if (failure.kind === 'contention' && run.contentions <= run.maxContentions) return { step: 'again' };
  if (run.length === 1) return { step: 'count' };
  if (failure.culprit !== undefined) return { step: 'isolate', culprit: failure.culprit };
  return { step: 'halve', length: Math.ceil(run.length / 2) };
}

/** What to do with an event that has failed `attempts` times by itself. */
export function afterAttempt(attempts: number, maxAttempts: number, deadLetters: 'outbox' | 'stall'): 'retry' | 'park' {
  return attempts >= maxAttempts && deadLetters === 'outbox' ? 'park' : 'retry';
}
