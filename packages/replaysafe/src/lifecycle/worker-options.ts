import { ReplaysafeError } from '../errors.js';
import {
  custom,
  integer,
  oneOf,
  optional,
  parseOptions,
  port,
  schemaName,
  text,
  type OptionReader,
  type ParsedOptions,
} from '../options.js';
import { poolHint, type SqlPort } from '../ports/sql.js';
import { type CronSchedule, type LeasedRunContext, type RunContext, type WorkerJob } from './worker-job.js';

/** `run` as the worker calls it: what is in the context depends on the options. */
export type Run = (context: RunContext & Partial<LeasedRunContext>) => Promise<void>;
export type NextMoment = (from: Date) => Date | null;

export type ParsedWorker = ReturnType<typeof parseWorker>;

const CRON_TEXT =
  "must be a schedule, not its text: the library reads no cron expressions; write cron: new Cron('…', { paused: true }) with " +
  'croner, or a function (from: Date) => Date | null';

const cron: OptionReader<CronSchedule> = custom((given) => {
  if (typeof given === 'string') return CRON_TEXT;
  if (typeof given === 'function') return undefined;
  const { nextRun } = (given ?? {}) as { readonly nextRun?: unknown };
  return typeof nextRun === 'function'
    ? undefined
    : 'must have nextRun(from), or be a function (from: Date) => Date | null';
});

const jitter: OptionReader<number> = custom((given) =>
  typeof given === 'number' && given >= 0 && given <= 0.5 ? undefined : 'must be a share from 0 to 0.5',
);

/** A job is read like options, but may have more of its own: it is often an object of another concept. */
const JOB_OPTIONS = {
  name: text(),
  everyMs: optional(integer({ min: 1 })),
  cron: optional(cron),
  job: port<WorkerJob>(['run']),
} as const;

const LEASE_OPTIONS = {
  sql: port<SqlPort>(['query', 'transaction', 'join'], undefined, poolHint),
  leaseMs: integer({ default: 30_000, min: 100 }),
  schema: schemaName(),
} as const;

const isObject = custom<object>((given) =>
  given !== null && typeof given === 'object' ? undefined : 'must be an object with sql',
);

const lease: OptionReader<ParsedOptions<typeof LEASE_OPTIONS>> = {
  read: (given) => parseOptions('lifecycle.worker: lease', LEASE_OPTIONS, isObject.read(given)),
};

const usedBy = custom<readonly string[]>(
  (given) =>
    Array.isArray(given) && given.every((name) => typeof name === 'string') ? undefined : 'must be a list of names',
  [],
);

const WORKER_OPTIONS = {
  usedBy,
  overlap: integer({ default: 1, min: 1, max: 16 }),
  firstRun: optional(oneOf(['now', 'later'])),
  jitter: optional(jitter),
  lease: optional(lease),
} as const;

/** @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID */
export function parseWorker(job: { readonly name: string } | undefined, options: object | undefined) {
  const given = (job ?? {}) as Partial<Record<'name' | 'everyMs' | 'cron', unknown>>;
  const read = parseOptions('lifecycle.worker', JOB_OPTIONS, {
    name: given.name,
    everyMs: given.everyMs,
    cron: given.cron,
    job,
  });
  const parsed = parseOptions('lifecycle.worker', WORKER_OPTIONS, options);
  const complain = (code: 'RS_OPTION_REQUIRED' | 'RS_OPTION_INVALID', detail: string): never => {
    throw new ReplaysafeError(code, { detail: `lifecycle.worker: ${detail}` });
  };

  const { name, everyMs, cron: schedule } = read;
  if (everyMs === undefined && schedule === undefined) complain('RS_OPTION_REQUIRED', 'everyMs or cron is required');
  if (everyMs !== undefined && schedule !== undefined) {
    complain('RS_OPTION_INVALID', 'everyMs and cron are two answers to one question; give one of them');
  }
  const firstRun = parsed.firstRun ?? (schedule === undefined ? 'now' : 'later');
  if (parsed.lease !== undefined) {
    if (parsed.overlap !== 1) complain('RS_OPTION_INVALID', 'overlap must be 1 with lease, which is held by one run');
    if (schedule !== undefined && firstRun === 'now') {
      complain(
        'RS_OPTION_INVALID',
        "firstRun must be 'later' with cron and lease: each process that starts would run it",
      );
    }
    if (name.length > 200 || name.includes('\0')) {
      complain('RS_OPTION_INVALID', 'the name of a worker with a lease has at most 200 characters, none of them NUL');
    }
  }
  return {
    name,
    everyMs,
    nextMoment: schedule === undefined ? undefined : nextMomentOf(schedule),
    firstRun,
    jitter: parsed.jitter ?? (schedule === undefined ? 0.1 : 0),
    overlap: parsed.overlap,
    usedBy: parsed.usedBy,
    lease: parsed.lease,
    // As a method: a job may be an object that needs its `this`.
    run: ((context) => read.job.run(context)) as Run,
  };
}

function nextMomentOf(schedule: CronSchedule): NextMoment {
  return typeof schedule === 'function' ? schedule : (from) => schedule.nextRun(from);
}
