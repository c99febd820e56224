import { ERRORS } from '../errors.js';
import type { HttpAnswer } from './http.js';

/** The answers that the engine gives by itself, as RFC 9457 problems: error code -> last part of the `type`. */
export const PROBLEMS = {
  RS_IDEMPOTENCY_KEY_REQUIRED: 'idempotency-key-required',
  RS_IDEMPOTENCY_KEY_INVALID: 'idempotency-key-invalid',
  RS_IDEMPOTENCY_KEY_REUSED: 'idempotency-key-reused',
  RS_IDEMPOTENCY_IN_PROGRESS: 'idempotency-in-progress',
  RS_IDEMPOTENCY_RESPONSE_UNAVAILABLE: 'idempotency-response-unavailable',
  RS_IDEMPOTENCY_KEY_EXPIRED: 'idempotency-key-expired',
  RS_IDEMPOTENCY_STORE_UNAVAILABLE: 'idempotency-store-unavailable',
  RS_IDEMPOTENCY_BODY_TOO_LARGE: 'idempotency-body-too-large',
  RS_IDEMPOTENCY_BODY_INVALID: 'idempotency-body-invalid',
  RS_IDEMPOTENCY_ROLLED_BACK: 'transaction-rolled-back',
  RS_MIGRATE_PENDING: 'migration-pending',
  RS_TX_OUTCOME_UNKNOWN: 'transaction-outcome-unknown',
  RS_TX_ABORTED: 'transaction-aborted',
  RS_TX_LOST: 'transaction-lost',
  RS_TX_DANGLING: 'transaction-dangling',
} as const satisfies Partial<Record<keyof typeof ERRORS, string>>;

export type ProblemCode = keyof typeof PROBLEMS;

export const isProblemCode = (code: string): code is ProblemCode => Object.hasOwn(PROBLEMS, code);

/** Whole seconds after which a retry makes sense, for every problem that is retryable. */
const RETRY_AFTER_SECONDS = '1';

export interface ProblemSettings {
  readonly problemBase: string;
  readonly reusedStatus: 422 | 409;
}

export interface ProblemOverrides {
  /** Where this occurrence is not what the table says, e.g. a request without a key. */
  readonly retryable?: boolean;
  /** Ends the connection: this process is going away. */
  readonly close?: boolean;
}

/** `type`, `title` and `code` are stable; nothing of the request, above all no key, is echoed. */
export function problem(settings: ProblemSettings, code: ProblemCode, overrides: ProblemOverrides = {}): HttpAnswer {
  const { message, status: tableStatus, retryable: tableRetryable } = ERRORS[code];
  const status = code === 'RS_IDEMPOTENCY_KEY_REUSED' ? settings.reusedStatus : tableStatus;
  const retryable = overrides.retryable ?? tableRetryable;
  return {
    status,
    headers: {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...(retryable ? { 'retry-after': RETRY_AFTER_SECONDS } : {}),
      ...(overrides.close === true ? { connection: 'close' } : {}),
    },
    body: JSON.stringify({ type: settings.problemBase + PROBLEMS[code], title: message, status, retryable, code }),
  };
}
