import { ReplaysafeError } from '../errors.js';
import { type Clock } from '../ports/clock.js';
import { deriveKey } from '../ports/derive-key.js';
import { type Logger } from '../ports/logger.js';
import { type SqlTransaction } from '../ports/sql.js';
import { type ClaimedTask } from './claims.js';
import { type RunningTask, type TaskHandler } from './handler.js';
import { parseInput, type TaskKind } from './kind.js';
import { type TaskSql } from './sql.js';
import { settleByWindow, settleFailure, type RetryPolicy, type Settlement } from './states.js';
import { decodeJson } from './task.js';

/** A try under way. */
export interface Try {
  readonly task: ClaimedTask;
  /** By the monotonic clock: until when the claim is ours as far as this process knows. */
  leasedUntilMs: number;
  /** Its end is written in an open transaction of its handler, which holds the row: nobody else can take it meanwhile. */
  readonly completing: boolean;
  /** Somebody else may have it: nothing is written about this try any more. */
  readonly lost: boolean;
  /** Tells the handler that the lease is gone. */
  lose(): void;
  /** Ends the try now, whatever the handler does: it goes back as it was. */
  interrupt(): void;
}

export interface TryContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly statements: TaskSql;
  readonly policy: RetryPolicy;
  /** Called once, when the try has ended; undefined where the handler has completed the task itself. */
  readonly onEnd: (ended: Try, settlement: Settlement | undefined) => void;
}

const LARGEST_RESULT = 262_144;

/** Runs the handler of a claimed task, in this tick. */
export function beginTry(context: TryContext, task: ClaimedTask, kind: TaskKind, handler: TaskHandler): Try {
  const { clock, logger } = context;
  const controller = new AbortController();
  let ended = false;
  let lost = false;
  let completed = false;

  const end = (settlement: Settlement | undefined): void => {
    if (ended) return;
    ended = true;
    timer.cancel();
    context.onEnd(current, settlement);
  };
  // A handler that ignores its signal keeps its slot and its lease: run beside its own repetition it would do harm.
  const timer = clock.setTimer(
    kind.timeoutMs,
    () => {
      logger.warn({ task: task.id, kind: task.kind, timeoutMs: kind.timeoutMs }, 'a task did not end in its time');
      controller.abort(new ReplaysafeError('RS_TASK_TIMEOUT'));
    },
    { keepAlive: false },
  );
  const current: Try = {
    task,
    leasedUntilMs: 0,
    get completing() {
      return completed;
    },
    get lost() {
      return lost;
    },
    lose: () => {
      lost = true;
      controller.abort(new ReplaysafeError('RS_TASK_FENCED'));
    },
    interrupt: () => {
      controller.abort(new Error('the process is stopping'));
      end({ kind: 'released' });
    },
  };

  const running: RunningTask = {
    id: task.id,
    kind: task.kind,
    key: task.key,
    bytes: task.bytes,
    input: undefined,
    attempt: task.attempt,
    traceparent: task.traceparent,
    signal: controller.signal,
    logger,
    keyFor: (step, ...parts) => deriveKey('task', task.kind, task.key, step, ...parts),
    complete: async (tx, result) => {
      // From before the statement on: a renewal would wait for the row, and with it those of all other tasks.
      completed = true;
      try {
        await completeIn(tx, context.statements, task, encodeResult(result));
      } catch (error) {
        completed = false;
        throw error;
      }
    },
  };

  const attempt = async (): Promise<Settlement | undefined> => {
    const tooLate = settleByWindow(task.knownMs, kind.keyWindowMs);
    if (tooLate) return tooLate;
    try {
      const input = parseInput(kind, decodeJson(task.bytes));
      const result = await handler({ ...running, input } as RunningTask<never>);
      // Committed with the handler's own rows, or rolled back with them: then the lease brings the task back.
      return completed ? undefined : { kind: 'succeeded', result: encodeResult(result) };
    } catch (error) {
      return settleFailure(task, error, false, context.policy);
    }
  };
  void attempt().then(end);
  return current;
}

/** The operation is done; it must not be repeated because of what it says of itself. */
function encodeResult(result: unknown): Uint8Array | null {
  let text: string | undefined;
  try {
    text = jsonOf(result);
  } catch {
    return omitted('the result has no JSON form');
  }
  if (text === undefined) return null;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= LARGEST_RESULT) return bytes;
  return omitted(`the result has ${bytes.length} bytes, more than ${LARGEST_RESULT}`);
}

function jsonOf(value: unknown): string | undefined {
  return JSON.stringify(value);
}

function omitted(why: string): Uint8Array {
  return Buffer.from(JSON.stringify({ omitted: why }));
}

async function completeIn(
  tx: SqlTransaction,
  statements: TaskSql,
  { id, token }: ClaimedTask,
  result: Uint8Array | null,
): Promise<void> {
  const row = {
    id,
    token,
    status: 'SUCCEEDED',
    given_back: 0,
    failed: 0,
    result: result && Buffer.from(result).toString('base64'),
  };
  const { rowCount } = await tx.query(statements.settle, [JSON.stringify([row])]);
  if (rowCount === 0) throw new ReplaysafeError('RS_TASK_FENCED');
}
