import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { custom, integer, optional, oneOf, parseOptions, port, schemaName, text } from '../options.js';
import { isPortTransaction, orMigratePending, poolHint, SQL_PORT_METHODS } from '../ports/sql.js';
import { type SqlExecutor, type SqlPort, type SqlResult, type SqlTransaction } from '../ports/sql.js';
import { type PeriodicJob } from '../ports/stop.js';
import { parseInput, type InputOf, type ResultOf, type TaskKinds } from './kind.js';
import { taskSql } from './sql.js';
import { TASK_STATES, type TaskState } from './states.js';
import { checkedTaskKey, encodeInput, readTask, type Task, type TaskRow } from './task.js';

export interface TasksOptions<Tx, Kinds extends TaskKinds> {
  readonly sql: SqlPort<Tx>;
  /** Every kind that may be enqueued, by name: `{ 'send-receipt': taskKind<{ orderId: string }>() }`. */
  readonly kinds: Kinds;
  /** Schema of the library's tables. Default `replaysafe`. */
  readonly schema?: string;
}

export interface NewTask<Kind extends string, Input> {
  readonly kind: Kind;
  /** The idempotency key of the operation, the same on every try: `operationKey('receipt', orderId)`. */
  readonly key: string;
  /** Anything with a JSON form, of at most 256 KiB. Every try is given the same bytes. */
  readonly input: Input;
  /** Not run before this moment. Default: at once. */
  readonly availableAt?: Date;
  /** Handed to the handler, for a trace that goes on. */
  readonly traceparent?: string;
}

export interface Enqueued {
  readonly id: string;
  /** False where the operation was there already: it is one row, however often it is enqueued. */
  readonly created: boolean;
}

/** `cancelled`: it will not run. `after-try`: it runs at this moment, and will not be tried again if that fails. */
export type CancelOutcome = 'cancelled' | 'after-try' | 'ended' | 'unknown';

export interface TasksStatus {
  readonly pending: number;
  readonly running: number;
  /** Given up on: they wait for a redrive. */
  readonly failed: number;
  /** Milliseconds since the task that has been due longest became so, by the database's clock; 0 without one. */
  readonly oldestDueAgeMs: number;
}

export interface CleanerOptions {
  /** Default 60 s. */
  readonly everyMs?: number;
  /** How long an ended task is kept, and with it its result and the refusal of its key. Default 7 days. */
  readonly retentionMs?: number;
  /** Rows of one statement. Default 1,000. */
  readonly batchSize?: number;
}

export interface Tasks<Tx, Kinds extends TaskKinds> {
  /**
   * Writes a task inside the caller's transaction: it is run if that commits, and never if it does not. The same
   * operation (kind and key) is written once: a second time gives the first one's id.
   * @throws RS_OUTBOX_NO_TRANSACTION, RS_TASK_INVALID, RS_MIGRATE_PENDING
   * @throws RS_TASK_KEY_REUSED when the operation is there with another input
   */
  enqueue<Kind extends keyof Kinds & string>(
    tx: Tx | SqlTransaction<Tx>,
    task: NewTask<Kind, InputOf<Kinds[Kind]>>,
  ): Promise<Enqueued>;
  /** By the id that `enqueue` gave. */
  get(id: string): Promise<Task | undefined>;
  /** By the operation itself. */
  find<Kind extends keyof Kinds & string>(kind: Kind, key: string): Promise<Task<ResultOf<Kinds[Kind]>> | undefined>;
  /** The newest first. Default limit 100. */
  list(filter?: {
    readonly status?: TaskState;
    readonly kind?: string;
    readonly limit?: number;
  }): Promise<readonly Task[]>;
  cancel(id: string): Promise<CancelOutcome>;
  /**
   * FAILED tasks are tried again, with the same key and the same input. Returns their ids.
   * @throws RS_OPTION_INVALID
   */
  redrive(what: { readonly ids: readonly string[] } | { readonly kind: string }): Promise<readonly string[]>;
  status(): Promise<TasksStatus>;
  /** Deletes what succeeded or was cancelled and is older than the retention; FAILED tasks stay. For `lifecycle.worker()`. */
  cleaner(options?: CleanerOptions): PeriodicJob;
}

const DAY_MS = 86_400_000;
const REDRIVE_ROWS = 10_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const LIST_OPTIONS = {
  status: optional(oneOf(TASK_STATES)),
  kind: optional(text()),
  limit: integer({ default: 100, min: 1, max: 10_000 }),
} as const;
const REDRIVE_OPTIONS = {
  ids: optional(
    custom<readonly string[]>((given) =>
      Array.isArray(given) && given.every((id) => typeof id === 'string') ? undefined : 'must be a list of ids',
    ),
  ),
  kind: optional(text()),
} as const;
const CLEANER_OPTIONS = {
  everyMs: integer({ default: 60_000, min: 1 }),
  retentionMs: integer({ default: 7 * DAY_MS }),
  batchSize: integer({ default: 1_000, min: 1, max: 100_000 }),
} as const;

export const kindsOption = <Kinds extends TaskKinds>() =>
  custom<Kinds>((given) =>
    typeof given === 'object' && given !== null && Object.values(given).every(isKind)
      ? undefined
      : "must be an object of kinds by name: { 'send-receipt': taskKind<{ orderId: string }>() }",
  );

function isKind(given: unknown): boolean {
  return typeof given === 'object' && given !== null && 'maxFailures' in given && 'timeoutMs' in given;
}

/**
 * Operations that must be carried out even if the process does not live to see it: written in the business transaction,
 * run by a worker ({@link createTaskWorker}) with the same key and the same input until they are done.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createTasks<Tx, Kinds extends TaskKinds>(options: TasksOptions<Tx, Kinds>): Tasks<Tx, Kinds> {
  const { sql, kinds, schema } = parseOptions(
    'createTasks',
    {
      sql: port<SqlPort<Tx>>(SQL_PORT_METHODS, undefined, poolHint),
      kinds: kindsOption<Kinds>(),
      schema: schemaName(),
    },
    options,
  );
  const statements = taskSql(`"${schema}"`);

  const run = async <Row>(
    executor: SqlExecutor,
    statement: string,
    params: readonly unknown[] = [],
  ): Promise<SqlResult<Row>> => {
    try {
      return await executor.query<Row>(statement, params);
    } catch (error) {
      throw orMigratePending(error);
    }
  };

  const prune = async (retentionMs: number, batchSize: number, stopping: AbortSignal): Promise<void> => {
    // Small pieces, each a transaction of its own: interrupted anywhere, nothing is half done.
    while (!stopping.aborted) {
      const { rowCount } = await run(sql, statements.prune, [retentionMs, batchSize]);
      if (rowCount < batchSize) return;
    }
  };

  return {
    async enqueue(tx, task) {
      const executor = isPortTransaction(tx) ? tx : sql.join(tx);
      const kind = Object.hasOwn(kinds, task.kind) ? kinds[task.kind] : undefined;
      if (!kind) throw new ReplaysafeError('RS_TASK_INVALID', { detail: `there is no kind "${task.kind}"` });
      const key = checkedTaskKey(task.key);
      const input = encodeInput(checkedInput(kind, task.input));
      const { availableAt = null, traceparent = null } = task;
      const params = [task.kind, key, input, traceparent, checkedMoment(availableAt), kind.maxFailures];
      const written = (await run<{ id: string }>(executor, statements.enqueue, params)).rows[0];
      if (written) {
        emit('task.enqueued', { id: written.id, kind: task.kind });
        return { id: written.id, created: true };
      }
      const known = (await run<{ id: string; same: boolean }>(executor, statements.findEnqueued, params.slice(0, 3)))
        .rows[0];
      // Deleted between the two statements, at the end of its retention: there is nothing left to be compared with.
      if (!known) throw new ReplaysafeError('RS_TASK_INVALID', { detail: 'the operation has just been pruned' });
      if (!known.same) throw new ReplaysafeError('RS_TASK_KEY_REUSED', { detail: `kind "${task.kind}"` });
      return { id: known.id, created: false };
    },

    async get(id) {
      if (!UUID.test(id)) return undefined;
      const row = (await run<TaskRow>(sql, statements.get, [id])).rows[0];
      return row && readTask(row);
    },

    async find<Kind extends keyof Kinds & string>(kind: Kind, key: string) {
      const row = (await run<TaskRow>(sql, statements.find, [kind, key])).rows[0];
      return row && readTask<ResultOf<Kinds[Kind]>>(row);
    },

    async list(filter) {
      const { status = null, kind = null, limit } = parseOptions('tasks.list', LIST_OPTIONS, filter);
      return (await run<TaskRow>(sql, statements.list, [status, kind, limit])).rows.map((row) => readTask(row));
    },

    async cancel(id) {
      if (!UUID.test(id)) return 'unknown';
      const row = (await run<{ status: TaskState }>(sql, statements.cancel, [id])).rows[0];
      if (row) return row.status === 'CANCELLED' ? 'cancelled' : 'after-try';
      return (await run(sql, statements.get, [id])).rowCount > 0 ? 'ended' : 'unknown';
    },

    async redrive(what) {
      const { ids, kind = null } = parseOptions('tasks.redrive', REDRIVE_OPTIONS, what);
      if (ids === undefined && kind === null) {
        throw new ReplaysafeError('RS_OPTION_INVALID', { detail: 'tasks.redrive: name ids, or a kind' });
      }
      const list = ids ? `{${ids.filter((id) => UUID.test(id)).join(',')}}` : null;
      const { rows } = await run<{ id: string }>(sql, statements.redrive, [list, kind, REDRIVE_ROWS]);
      return rows.map(({ id }) => id);
    },

    async status() {
      const row = (await run<StatusRow>(sql, statements.status)).rows[0];
      return {
        pending: Number(row?.pending),
        running: Number(row?.running),
        failed: Number(row?.failed),
        oldestDueAgeMs: row?.oldest_ms ?? 0,
      };
    },

    cleaner(cleanerOptions) {
      const { everyMs, retentionMs, batchSize } = parseOptions('tasks.cleaner', CLEANER_OPTIONS, cleanerOptions);
      return { name: 'task-cleaner', everyMs, run: ({ stopping }) => prune(retentionMs, batchSize, stopping) };
    },
  };
}

interface StatusRow {
  readonly pending: string;
  readonly running: string;
  readonly failed: string;
  readonly oldest_ms: number | null;
}

function checkedInput(kind: TaskKinds[string], input: unknown): unknown {
  try {
    parseInput(kind, input);
  } catch (cause) {
    throw new ReplaysafeError('RS_TASK_INVALID', { detail: 'the input is not one of its kind', cause });
  }
  return input;
}

function checkedMoment(moment: unknown): Date | null {
  if (moment === null) return null;
  if (moment instanceof Date && !Number.isNaN(moment.getTime())) return moment;
  throw new ReplaysafeError('RS_TASK_INVALID', { detail: 'availableAt must be a valid Date' });
}
