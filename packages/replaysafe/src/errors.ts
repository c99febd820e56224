interface ErrorEntry {
  readonly message: string;
  /** The status an HTTP adapter answers with when the error reaches it. */
  readonly status: number;
  /** Whether doing the same again, later, with the same key, is safe and can succeed. */
  readonly retryable: boolean;
}

/**
 * Every error the library throws or answers with. A code is never reused for another meaning; match by `code`, never by
 * `instanceof` (two copies of the package may be loaded) nor by message.
 */
export const ERRORS = {
  // options
  RS_OPTION_UNKNOWN: entry('an option of this name does not exist', 500, false),
  RS_OPTION_REQUIRED: entry('a required option is missing', 500, false),
  RS_OPTION_INVALID: entry('an option has a value that it cannot take', 500, false),

  // SQL port
  RS_SQL_UNAVAILABLE: entry('the database cannot be reached', 503, true),
  RS_TX_ABORTED: entry(
    'a statement failed inside the transaction and the failure was swallowed; nothing was committed',
    500,
    false,
  ),
  RS_TX_LOST: entry('the callback ended the transaction that was opened for it, or its own rows are gone', 500, false),
  RS_TX_REVOKED: entry('the transaction handle was used after its transaction had ended', 500, false),
  RS_TX_DANGLING: entry(
    'the callback returned while a statement that nobody awaited was still under way; nothing was committed',
    500,
    false,
  ),
  RS_TX_OUTCOME_UNKNOWN: entry('the connection was lost while COMMIT was under way; the outcome is unknown', 503, true),
  RS_TX_DEADLINE: entry('the transaction was cut at its deadline and rolled back', 503, true),

  // migrate
  RS_MIGRATE_NEWER_SCHEMA: entry(
    'the schema was written by a newer version of the library that this one cannot use',
    500,
    false,
  ),
  RS_MIGRATE_CHANGED: entry('a migration that was already applied has a different text now', 500, false),
  RS_MIGRATE_FAILED: entry('a migration cannot be applied and was rolled back', 500, false),
  RS_MIGRATE_STOPPING: entry('the process is stopping; it starts no migration', 503, true),
  RS_MIGRATE_PENDING: entry(
    'the schema has not been migrated to this version; run `npx replaysafe-cli migrate` or call migrate(sql)',
    500,
    false,
  ),

  // outbox
  RS_OUTBOX_NO_TRANSACTION: entry(
    'enqueue needs a transaction: it was given a pool, an idle client, or nothing',
    500,
    false,
  ),
  RS_OUTBOX_EVENT_INVALID: entry('the event cannot be written to the outbox', 500, false),

  // inbox
  RS_INBOX_EVENT_ID_MISSING: entry('the record carries no event id', 500, false),
  RS_INBOX_PAYLOAD_INVALID: entry('the payload cannot be decoded', 500, false),
  RS_INBOX_ATTEMPTS_EXHAUSTED: entry('the handler failed as often as it may', 500, false),
  RS_INBOX_HANDLER_TIMEOUT: entry('the handler did not end in its time', 500, true),
  RS_INBOX_INTERRUPTED: entry(
    'the batch was given back before its end; what is committed of it is not applied again',
    503,
    true,
  ),

  // tasks
  RS_TASK_INVALID: entry('the task cannot be written', 500, false),
  RS_TASK_KEY_REUSED: entry('the operation was enqueued before with another input', 500, false),
  RS_TASK_FENCED: entry('another worker has claimed the task since: its lease ran out', 500, false),
  RS_TASK_TIMEOUT: entry('the try did not end in its time', 500, true),

  // broker adapters
  RS_BROKER_UNAVAILABLE: entry('the broker cannot be reached', 503, true),
  RS_BROKER_TOPIC_MISSING: entry('the topic does not exist', 500, false),
  RS_BROKER_OFFSET_OUT_OF_RANGE: entry(
    'the offset to go on from is not kept by the broker any more; the partition stands still',
    500,
    false,
  ),
  RS_BROKER_UNSAFE_SETTING: entry('a setting of the broker client loses or reorders messages', 500, false),

  // idempotency
  RS_IDEMPOTENCY_KEY_REQUIRED: entry('this request needs an Idempotency-Key header', 400, false),
  RS_IDEMPOTENCY_KEY_INVALID: entry(
    'the Idempotency-Key header is not one key of 1 to 255 printable ASCII characters',
    400,
    false,
  ),
  RS_IDEMPOTENCY_KEY_REUSED: entry('this Idempotency-Key was first used with another request', 422, false),
  RS_IDEMPOTENCY_IN_PROGRESS: entry('a request with this Idempotency-Key is still being processed', 409, true),
  RS_IDEMPOTENCY_RESPONSE_UNAVAILABLE: entry('the operation is complete but its response was not stored', 409, false),
  RS_IDEMPOTENCY_KEY_EXPIRED: entry(
    'this Idempotency-Key was used too long ago for its response to be known',
    409,
    false,
  ),
  RS_IDEMPOTENCY_STORE_UNAVAILABLE: entry(
    'the idempotency store cannot be reached; the request was not executed',
    503,
    true,
  ),
  RS_IDEMPOTENCY_BODY_TOO_LARGE: entry('the request body is larger than this route accepts', 413, false),
  RS_IDEMPOTENCY_BODY_INVALID: entry('the request body is not JSON', 400, false),
  RS_IDEMPOTENCY_ROLLED_BACK: entry(
    'the database rolled the request back: another transaction was in its way, or the connection was lost before COMMIT',
    503,
    true,
  ),
  RS_IDEMPOTENCY_SCOPE_INVALID: entry(
    'the scope resolver did not name whose key this is; authenticate before the guarded handler',
    500,
    false,
  ),
  RS_IDEMPOTENCY_UNGUARDED: entry(
    'the request is not guarded, so that it has neither a transaction nor a key',
    500,
    false,
  ),

  // client
  RS_CLIENT_KEY_REQUIRED: entry('a write that may be sent more than once needs an idempotency key', 500, false),
  RS_CLIENT_KEY_INVALID: entry(
    'an idempotency key part is empty, undefined, not finite, or the key is not 1 to 255 printable ASCII characters',
    500,
    false,
  ),
  RS_CLIENT_BODY_NOT_REPLAYABLE: entry('a body that can be read only once cannot be sent again', 500, false),
  RS_CLIENT_TIMEOUT: entry('the remote system did not answer in time', 504, true),
  RS_CLIENT_SYSTEM_UNAVAILABLE: entry('the remote system cannot be reached, or its circuit breaker is open', 503, true),
  RS_CLIENT_OVERLOADED: entry('too many calls to this system are running and waiting; nothing was sent', 503, true),
  RS_CLIENT_OUTCOME_UNKNOWN: entry(
    'the request may have been executed; ask again with the same key, never with a new one',
    504,
    true,
  ),
  RS_CLIENT_REQUEST_INVALID: entry('the request cannot be sent as it is', 500, false),
  RS_CLIENT_ABORTED: entry('the caller gave the call up', 500, false),
  RS_CLIENT_ANSWER_TEMPORARY: entry('the remote system answered that it cannot serve the request now', 503, true),
  RS_CLIENT_ANSWER_REFUSED: entry('the remote system refused the request', 500, false),
  RS_CLIENT_STOPPED: entry('the process is stopping; the call was not sent, or not sent again', 503, true),

  // lifecycle
  RS_LIFECYCLE_BUDGET: entry('the shutdown budget does not fit into the grace period', 500, false),
  RS_LIFECYCLE_DUPLICATE_NAME: entry('two resources have the same name', 500, false),
  RS_LIFECYCLE_CYCLE: entry('the declared stop order has a circle', 500, false),
  RS_LIFECYCLE_LEASE_LOST: entry(
    'another process has taken the lease of this worker over; nothing that this run still writes may be committed',
    503,
    true,
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export interface ReplaysafeErrorOptions {
  readonly cause?: unknown;
  /** What makes this occurrence different, put behind the table's sentence. Never holds keys, payloads or secrets. */
  readonly detail?: string;
}

/** The one error class. `status` and `retryable` come from {@link ERRORS}. */
export class ReplaysafeError extends Error {
  override readonly name = 'ReplaysafeError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly retryable: boolean;

  constructor(code: ErrorCode, options: ReplaysafeErrorOptions = {}) {
    const { message, status, retryable } = ERRORS[code];
    super(
      options.detail === undefined ? message : `${message}: ${options.detail}`,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.status = status;
    this.retryable = retryable;
  }
}

/** Whether a value is an error of this library, from whichever copy of the package, with one of the given codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): error is ReplaysafeError {
  return error instanceof Error && 'code' in error && (codes as readonly unknown[]).includes(error.code);
}

function entry(message: string, status: number, retryable: boolean): ErrorEntry {
  return { message, status, retryable };
}
