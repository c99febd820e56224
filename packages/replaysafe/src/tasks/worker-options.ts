import { randomBytes } from 'node:crypto';
import { ReplaysafeError } from '../errors.js';
import { custom, integer, optional, parseOptions, port, schemaName, text } from '../options.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { poolHint, SQL_PORT_METHODS, type SqlPort } from '../ports/sql.js';
import { stopSignals, type StopSignals } from '../ports/stop.js';
import { type TaskHandler, type TaskHandlers } from './handler.js';
import { type TaskKinds } from './kind.js';
import { kindsOption } from './tasks.js';

export interface TaskWorkerOptions<Kinds extends TaskKinds> {
  readonly sql: SqlPort;
  /** The same as for `createTasks`. */
  readonly kinds: Kinds;
  /** What carries out each kind; kinds without a handler are left to other workers. */
  readonly handlers: TaskHandlers<Kinds>;
  /** Most tasks that run at the same time in this process. Default 10. */
  readonly concurrency?: number;
  /** How long a claim lasts without being renewed, in milliseconds. Default 30,000. */
  readonly leaseMs?: number;
  /** Longest wait between two polls while there is nothing to do, in milliseconds. Default 1,000. */
  readonly pollIdleMs?: number;
  /** Shortest wait between two polls, in milliseconds. Default 10. */
  readonly pollBusyMs?: number;
  /** Waits of a task that failed: exponential with full jitter, in milliseconds. Default 1,000 and 600,000. */
  readonly backoff?: { readonly baseMs?: number; readonly capMs?: number };
  /** Name in events and logs. Default `tasks-` and eight random digits. */
  readonly name?: string;
  /** Schema of the library's tables. Default `replaysafe`. */
  readonly schema?: string;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** `lifecycle.signalsFor('work')`: the worker ends by itself when they say so. */
  readonly signals?: StopSignals;
}

const BACKOFF_OPTIONS = {
  baseMs: integer({ default: 1_000, min: 1 }),
  capMs: integer({ default: 600_000, min: 1 }),
} as const;

/** @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID */
export function parseWorkerOptions<Kinds extends TaskKinds>(options: TaskWorkerOptions<Kinds>) {
  const parsed = parseOptions(
    'createTaskWorker',
    {
      sql: port<SqlPort>(SQL_PORT_METHODS, undefined, poolHint),
      kinds: kindsOption<Kinds>(),
      handlers: custom<Readonly<Record<string, TaskHandler>>>((given) =>
        typeof given === 'object' && given !== null && Object.values(given).every((each) => typeof each === 'function')
          ? undefined
          : 'must be an object of functions, one for each kind that this worker runs',
      ),
      concurrency: integer({ default: 10, min: 1, max: 10_000 }),
      leaseMs: integer({ default: 30_000, min: 100 }),
      pollIdleMs: integer({ default: 1_000, min: 1 }),
      pollBusyMs: integer({ default: 10, min: 1 }),
      backoff: custom<object>(
        (given) => (typeof given === 'object' && given !== null ? undefined : 'must be an object'),
        {},
      ),
      name: text({ default: `tasks-${randomBytes(4).toString('hex')}` }),
      schema: schemaName(),
      logger: port<Logger>(['debug', 'info', 'warn', 'error'], silentLogger),
      clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
      random: port<Random>(['next'], systemRandom),
      signals: optional(stopSignals),
    },
    options,
  );
  const backoff = parseOptions('createTaskWorker: backoff', BACKOFF_OPTIONS, parsed.backoff);
  const complaint =
    unknownKind(parsed.kinds, parsed.handlers) ??
    (backoff.baseMs > backoff.capMs ? 'backoff.baseMs must not be longer than backoff.capMs' : undefined) ??
    (parsed.pollBusyMs > parsed.pollIdleMs ? 'pollBusyMs must not be longer than pollIdleMs' : undefined);
  if (complaint !== undefined) {
    throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `createTaskWorker: ${complaint}` });
  }
  return { ...parsed, backoff };
}

export type ParsedWorkerOptions = ReturnType<typeof parseWorkerOptions<TaskKinds>>;

function unknownKind(kinds: TaskKinds, handlers: Readonly<Record<string, unknown>>): string | undefined {
  const unknown = Object.keys(handlers).filter((name) => !Object.hasOwn(kinds, name));
  if (unknown.length > 0) return `handlers names kinds that do not exist: ${unknown.join(', ')}`;
  return Object.keys(handlers).length === 0 ? 'handlers is empty: there is nothing to run' : undefined;
}
