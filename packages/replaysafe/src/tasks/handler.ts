import { type KeyPart } from '../ports/derive-key.js';
import { type Logger } from '../ports/logger.js';
import { type SqlTransaction } from '../ports/sql.js';
import { type InputOf, type ResultOf, type TaskKinds } from './kind.js';

/** One try of a task, as its handler sees it. */
export interface RunningTask<Input = unknown, Result = unknown> {
  readonly id: string;
  readonly kind: string;
  /** The idempotency key of the operation: the same on every try, in every process. */
  readonly key: string;
  readonly input: Input;
  /** The input as it is stored: what is sent byte for byte is the same on every try. */
  readonly bytes: Uint8Array;
  /** 1 for the first. */
  readonly attempt: number;
  readonly traceparent: string | undefined;
  /**
   * Aborts when the try's time is over, when the process has to end, or when the lease is lost. What was sent by then may
   * have arrived: the next try sends the same key.
   */
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** The key of one step of an operation that makes several calls; made of kind, key and step alone (P18). */
  readonly keyFor: (step: string, ...parts: readonly KeyPart[]) => string;
  /**
   * Ends the task as SUCCEEDED inside a transaction of the handler, so that its rows and the end of the task are
   * committed together. A worker that was frozen past its lease cannot (P10).
   * @throws RS_TASK_FENCED
   */
  readonly complete: (tx: SqlTransaction, result?: Result) => Promise<void>;
}

/** Carries out one try. What it returns is stored as JSON; what it throws is a failure, final with `retryable: false`. */
export type TaskHandler<Input = never, Result = unknown> = (
  task: RunningTask<Input, Result>,
) => Promise<Result> | Result;

export type TaskHandlers<Kinds extends TaskKinds> = {
  readonly [Kind in keyof Kinds]?: TaskHandler<InputOf<Kinds[Kind]>, ResultOf<Kinds[Kind]>>;
};
