import { ReplaysafeError } from '../errors.js';
import { type TaskState } from './states.js';

/** A task as its row says. */
export interface Task<Result = unknown> {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly status: TaskState;
  /** Tries begun. */
  readonly attempts: number;
  /** Tries that failed since it was enqueued, or redriven. */
  readonly failures: number;
  readonly maxFailures: number;
  /** Of the latest try that failed. */
  readonly lastError: string | undefined;
  readonly cancelRequested: boolean;
  readonly input: unknown;
  /** What the handler returned; undefined unless SUCCEEDED. */
  readonly result: Result | undefined;
  /** When it is due; the moment is past for a task that has ended. */
  readonly nextAttemptAt: Date;
  readonly createdAt: Date;
  readonly finishedAt: Date | undefined;
}

export interface TaskRow {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly status: TaskState;
  readonly attempts: number;
  readonly failures: number;
  readonly max_failures: number;
  readonly last_error: string | null;
  readonly cancel_requested: boolean;
  readonly input: Uint8Array;
  readonly result: Uint8Array | null;
  readonly next_attempt_ms: number;
  readonly created_ms: number;
  readonly finished_ms: number | null;
}

export function readTask<Result>(row: TaskRow): Task<Result> {
  return {
    id: row.id,
    kind: row.kind,
    key: row.key,
    status: row.status,
    attempts: row.attempts,
    failures: row.failures,
    maxFailures: row.max_failures,
    lastError: row.last_error ?? undefined,
    cancelRequested: row.cancel_requested,
    input: decodeJson(row.input),
    result: row.result === null ? undefined : (decodeJson(row.result) as Result),
    nextAttemptAt: new Date(row.next_attempt_ms),
    createdAt: new Date(row.created_ms),
    finishedAt: row.finished_ms === null ? undefined : new Date(row.finished_ms),
  };
}

export function decodeJson(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString('utf8')) as unknown;
}

// What a key may be is decided by where it is sent: the header Idempotency-Key.
const KEY = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,255}$/;
/** A row is read whole by every claim; what is larger belongs in a table of its own, with its id in the input. */
const LARGEST_INPUT = 262_144;

/** @throws RS_TASK_INVALID */
export function checkedTaskKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key;
  throw new ReplaysafeError('RS_TASK_INVALID', {
    detail:
      'the key must be 1 to 255 printable ASCII characters without blank, quote, comma and backslash; see operationKey',
  });
}

/**
 * Serialised once: every try is given the same bytes.
 * @throws RS_TASK_INVALID
 */
export function encodeInput(input: unknown): Buffer {
  const text = jsonOf(input);
  if (text === undefined) throw new ReplaysafeError('RS_TASK_INVALID', { detail: 'the input has no JSON form' });
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length > LARGEST_INPUT) {
    throw new ReplaysafeError('RS_TASK_INVALID', {
      detail: `the input has ${bytes.length} bytes, more than ${LARGEST_INPUT}; store it and pass its id`,
    });
  }
  return bytes;
}

function jsonOf(input: unknown): string | undefined {
  try {
    return JSON.stringify(input);
  } catch (cause) {
    throw new ReplaysafeError('RS_TASK_INVALID', { detail: 'the input has no JSON form', cause });
  }
}
