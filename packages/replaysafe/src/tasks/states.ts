import { hasCode } from '../errors.js';
import { type Random } from '../ports/random.js';
import { storableText } from '../ports/storable-text.js';
import { backoffDelay } from '../retry/backoff.js';

/** The states of a task. The CHECK constraints of `task` tie each to its columns. */
export const TASK_STATES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const;
export type TaskState = (typeof TASK_STATES)[number];

/** Which columns a state needs (`true`), must not have (`false`), or leaves free (absent). */
export const STATE_COLUMNS: {
  readonly [State in TaskState]: Readonly<
    Partial<Record<'claim_token' | 'locked_until' | 'finished_at' | 'result' | 'last_error', boolean>>
  >;
} = {
  PENDING: { claim_token: false, locked_until: false, finished_at: false, result: false },
  RUNNING: { claim_token: true, locked_until: true, finished_at: false, result: false },
  SUCCEEDED: { claim_token: false, locked_until: false, finished_at: true },
  FAILED: { claim_token: false, locked_until: false, finished_at: true, result: false, last_error: true },
  CANCELLED: { claim_token: false, locked_until: false, finished_at: true, result: false },
};

/** What moves a task from one state to another. Nothing leaves SUCCEEDED and CANCELLED; only a person leaves FAILED. */
export const TRANSITIONS = [
  { from: 'PENDING', to: 'RUNNING', by: 'claim' },
  { from: 'RUNNING', to: 'SUCCEEDED', by: 'succeed' },
  { from: 'RUNNING', to: 'PENDING', by: 'fail' },
  { from: 'RUNNING', to: 'PENDING', by: 'release' },
  { from: 'RUNNING', to: 'PENDING', by: 'recover' },
  { from: 'RUNNING', to: 'FAILED', by: 'give up' },
  { from: 'RUNNING', to: 'CANCELLED', by: 'cancel, at the end of a try that failed' },
  { from: 'PENDING', to: 'CANCELLED', by: 'cancel' },
  { from: 'FAILED', to: 'PENDING', by: 'redrive' },
] as const satisfies readonly { from: TaskState; to: TaskState; by: string }[];

export interface RetryPolicy {
  readonly baseMs: number;
  readonly capMs: number;
  readonly random: Random;
}

export type FailureReason = 'max-failures' | 'not-retryable' | 'key-window';

/** What is written for a task after its try has ended. */
export type Settlement =
  | { readonly kind: 'succeeded'; readonly result: Uint8Array | null }
  | { readonly kind: 'released' }
  | { readonly kind: 'failed'; readonly error: string; readonly delayMs: number }
  | { readonly kind: 'given-up'; readonly error: string; readonly reason: FailureReason };

/**
 * The end of a try that did not succeed. `interrupted`: the process cut it to end in time; that is no failure of the
 * task. An error that says `retryable: false` of itself will not become better by being repeated.
 */
export function settleFailure(
  task: { readonly failures: number; readonly maxFailures: number },
  error: unknown,
  interrupted: boolean,
  policy: RetryPolicy,
): Settlement {
  if (interrupted) return { kind: 'released' };
  const { text, final } = read(error);
  const failures = task.failures + 1;
  if (final) return { kind: 'given-up', error: text, reason: 'not-retryable' };
  if (failures >= task.maxFailures) return { kind: 'given-up', error: text, reason: 'max-failures' };
  const { baseMs, capMs, random } = policy;
  return { kind: 'failed', error: text, delayMs: backoffDelay({ attempt: failures, baseMs, capMs, random }) };
}

/** What becomes of a task that is not tried any more since the other side may have forgotten its key; undefined where it may be tried. */
export function settleByWindow(knownMs: number, keyWindowMs: number | undefined): Settlement | undefined {
  if (keyWindowMs === undefined || knownMs < keyWindowMs) return undefined;
  const error = `the first try was ${Math.round(knownMs)} ms ago: the key may be forgotten, and would begin a new operation`;
  return { kind: 'given-up', error, reason: 'key-window' };
}

/** Never throws, whatever was thrown does when it is looked at: a handler's oddity must not end its worker. */
function read(error: unknown): { readonly text: string; readonly final: boolean } {
  try {
    return { text: describe(error), final: isFinal(error) };
  } catch {
    return { text: 'threw something that cannot be read', final: false };
  }
}

function isFinal(error: unknown): boolean {
  // A stop or a caller that gave up says nothing about the operation, though repeating that very call would be no use.
  if (hasCode(error, 'RS_CLIENT_STOPPED', 'RS_CLIENT_ABORTED')) return false;
  return typeof error === 'object' && error !== null && 'retryable' in error && error.retryable === false;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return storableText(`threw ${typeof error}: ${String(error)}`);
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return storableText(`${code}${error.message === '' ? error.name : error.message}`);
}
