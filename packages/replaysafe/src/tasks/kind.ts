import { callback, custom, integer, optional, parseOptions } from '../options.js';

export interface TaskKindOptions<Input> {
  /** So many failures are given up on: the task is FAILED and waits for a person. Default 20. */
  readonly maxFailures?: number;
  /** Bound of one try, in milliseconds: then its `signal` aborts. Default 60,000. */
  readonly timeoutMs?: number;
  /**
   * For how long after its first try a task may be tried again, in milliseconds: less than the other side remembers keys (many
   * do for 24 hours), since behind that the same key is a new operation. Then it is FAILED, its outcome to be found out by a
   * person. Default: no limit.
   */
  readonly keyWindowMs?: number;
  /** Checks an input when it is enqueued and again when it is run, e.g. `schema.parse`. Throws what is wrong. */
  readonly parse?: (input: unknown) => Input;
}

/** What is known of a kind of task, wherever it is enqueued or run: the types of its input and its result, and its bounds. */
export interface TaskKind<Input = unknown, Result = unknown> {
  readonly maxFailures: number;
  readonly timeoutMs: number;
  readonly keyWindowMs: number | undefined;
  readonly parse: ((input: unknown) => Input) | undefined;
  /** Never set: carries the types. */
  readonly types?: { readonly input: Input; readonly result: Result };
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a kind is neither co- nor contravariant in its input
export type TaskKinds = Readonly<Record<string, TaskKind<any, any>>>;
export type InputOf<Kind extends TaskKind> = NonNullable<Kind['types']>['input'];
export type ResultOf<Kind extends TaskKind> = NonNullable<Kind['types']>['result'];

const OPTIONS = {
  maxFailures: integer({ default: 20, min: 1 }),
  timeoutMs: integer({ default: 60_000, min: 1 }),
  keyWindowMs: optional(
    custom<number>((given) =>
      typeof given === 'number' && given > 0 ? undefined : 'must be a number of milliseconds',
    ),
  ),
  parse: optional(callback<(input: unknown) => unknown>()),
} as const;

/**
 * A kind of task: `taskKind<{ orderId: string }>()`. Its name is the one it has in `kinds`, and is stored: renaming it
 * leaves the tasks of the old name without a handler.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function taskKind<Input, Result = unknown>(options?: TaskKindOptions<Input>): TaskKind<Input, Result> {
  return parseOptions('taskKind', OPTIONS, options) as TaskKind<Input, Result>;
}

/** The input as its kind reads it. Throws what `parse` does, and where that answers with a promise: nobody waits for it. */
export function parseInput(kind: TaskKind, input: unknown): unknown {
  if (!kind.parse) return input;
  const parsed: unknown = kind.parse(input);
  if (!(parsed instanceof Promise)) return parsed;
  parsed.catch(() => undefined);
  throw new TypeError('parse must not be asynchronous');
}
