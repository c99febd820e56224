import type { PublishOutcome } from '../ports/broker.js';
import type { Random } from '../ports/random.js';
import { storableText } from '../ports/storable-text.js';
import { backoffDelay } from '../retry/backoff.js';

/** The states of an event. The CHECK constraints of `outbox_event` tie each to its columns. */
export const OUTBOX_STATES = ['PENDING', 'PUBLISHING', 'PUBLISHED', 'DEAD'] as const;
export type OutboxState = (typeof OUTBOX_STATES)[number];

/** Which columns a state needs (`true`), must not have (`false`), or leaves free (absent). */
export const STATE_COLUMNS: {
  readonly [State in OutboxState]: Readonly<
    Partial<Record<'claim_token' | 'locked_until' | 'published_at' | 'next_attempt_at' | 'last_error', boolean>>
  >;
} = {
  PENDING: { claim_token: false, locked_until: false, published_at: false },
  PUBLISHING: { claim_token: true, locked_until: true, published_at: false },
  PUBLISHED: { claim_token: true, locked_until: false, published_at: true, next_attempt_at: false },
  DEAD: { claim_token: false, locked_until: false, published_at: false, next_attempt_at: false, last_error: true },
};

/** What moves an event from one state to another. Nothing leaves PUBLISHED; nothing that the relay does leaves DEAD. */
export const TRANSITIONS = [
  { from: 'PENDING', to: 'PUBLISHING', by: 'claim' },
  { from: 'PENDING', to: 'PUBLISHED', by: 'mark (single-phase)' },
  { from: 'PENDING', to: 'PENDING', by: 'fail (single-phase)' },
  { from: 'PENDING', to: 'DEAD', by: 'give up (single-phase)' },
  { from: 'PUBLISHING', to: 'PUBLISHED', by: 'mark' },
  { from: 'PUBLISHING', to: 'PENDING', by: 'fail' },
  { from: 'PUBLISHING', to: 'PENDING', by: 'release' },
  { from: 'PUBLISHING', to: 'PENDING', by: 'recover' },
  { from: 'PUBLISHING', to: 'DEAD', by: 'give up' },
] as const satisfies readonly { from: OutboxState; to: OutboxState; by: string }[];

export interface FailurePolicy {
  readonly baseMs: number;
  readonly capMs: number;
  /** 0: never given up on for the number of its failures. */
  readonly maxFailures: number;
  readonly topicGraceMs: number;
  readonly random: Random;
}

export type DeadReason = 'rejected' | 'topic-refused' | 'max-failures';

/** What is written for a row after the broker has answered, or has not. */
export type Settlement =
  | { readonly kind: 'published' }
  | { readonly kind: 'released' }
  | FailedSettlement
  | {
      readonly kind: 'dead';
      readonly reason: DeadReason;
      readonly refused: boolean;
      readonly error: string;
    };

export interface FailedSettlement {
  readonly kind: 'failed';
  readonly outcome: 'topic-refused' | 'retriable' | 'unknown';
  readonly refused: boolean;
  readonly error: string;
  readonly delayMs: number;
}

/**
 * The transition of one row. `interrupted`: the publish was cut by the end of the process; then a row whose outcome is
 * open goes back as it was, for an interruption by a deploy is no failure.
 */
export function settle(
  row: { readonly failures: number; readonly refusedMs: number | undefined },
  outcome: PublishOutcome,
  interrupted: boolean,
  policy: FailurePolicy,
): Settlement {
  if (outcome.status === 'stored') return { kind: 'published' };
  if (interrupted && (outcome.status === 'retriable' || outcome.status === 'unknown')) return { kind: 'released' };
  const refused = outcome.status === 'topic-refused';
  const failures = row.failures + 1;
  const error = storableText(`${outcome.status}: ${outcome.reason}`);
  const reason: DeadReason | undefined =
    outcome.status === 'rejected'
      ? 'rejected'
      : refused && (row.refusedMs ?? 0) >= policy.topicGraceMs
        ? 'topic-refused'
        : policy.maxFailures > 0 && failures >= policy.maxFailures
          ? 'max-failures'
          : undefined;
  if (outcome.status === 'rejected' || reason !== undefined) {
    return { kind: 'dead', reason: reason ?? 'rejected', refused, error };
  }
  const { baseMs, capMs, random } = policy;
  return {
    kind: 'failed',
    outcome: outcome.status,
    refused,
    error,
    delayMs: backoffDelay({ attempt: failures, baseMs, capMs, random }),
  };
}
