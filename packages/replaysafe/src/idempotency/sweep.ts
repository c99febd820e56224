import { emit } from '../events.js';
import { integer, parseOptions, port, schemaName, text } from '../options.js';
import { boundedTransaction } from '../ports/bounded-transaction.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { poolHint, type SqlPort } from '../ports/sql.js';
import type { PeriodicJob } from '../ports/stop.js';
import { idempotencySql } from './sql.js';

export interface IdempotencySweepOptions {
  readonly sql: SqlPort<never> | SqlPort;
  /** Default `replaysafe`. */
  readonly schema?: string;
  /** Name of the job. Default `idempotency-sweep`. */
  readonly name?: string;
  /** From the end of a sweep to the start of the next, in milliseconds. Default 600,000. */
  readonly everyMs?: number;
  /** Most rows of one transaction. Default 500. */
  readonly batchSize?: number;
  /**
   * How long a key is refused as expired after its answer was forgotten, in milliseconds; then the key is unknown, and a
   * request that repeats it is executed. Default 30 days.
   */
  readonly rememberMs?: number;
  readonly clock?: Clock;
}

const DAY_MS = 86_400_000;
/** Bound of one batch, in milliseconds. */
const BATCH_MS = 15_000;

const SWEEP_OPTIONS = {
  sql: port<SqlPort>(['query', 'transaction'], undefined, poolHint),
  schema: schemaName(),
  name: text({ default: 'idempotency-sweep' }),
  everyMs: integer({ default: 600_000, min: 1 }),
  batchSize: integer({ default: 500, min: 1, max: 10_000 }),
  rememberMs: integer({ default: 30 * DAY_MS, max: Number.MAX_SAFE_INTEGER }),
  clock: port<Clock>(['monotonicMs', 'setTimer'], systemClock),
} as const;

/**
 * Forgets stored answers whose retention is over, and later their keys, a batch a transaction: what a worker of the lifecycle
 * runs. A stop ends it between two batches, a kill loses at most one, and requests never wait for it. Records of operations
 * that have not ended are left alone.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID; the run rejects with RS_MIGRATE_PENDING
 */
export function createIdempotencySweep(options: IdempotencySweepOptions): PeriodicJob {
  const { sql, schema, name, everyMs, batchSize, rememberMs, clock } = parseOptions(
    'createIdempotencySweep',
    SWEEP_OPTIONS,
    options,
  );
  const statements = idempotencySql(schema);

  const runBatch = (): Promise<{ readonly expired: number; readonly deleted: number }> =>
    boundedTransaction({ sql, clock }, BATCH_MS, async (tx) => {
      const { rowCount: expired } = await tx.query(statements.expire, [batchSize]);
      const { rowCount: deleted } = await tx.query(statements.forget, [batchSize, rememberMs]);
      return { expired, deleted };
    });

  return {
    name,
    everyMs,
    run: async ({ stopping }) => {
      while (!stopping.aborted) {
        const swept = await runBatch();
        if (swept.expired + swept.deleted > 0) emit('idempotency.swept', swept);
        if (swept.expired < batchSize && swept.deleted < batchSize) return;
      }
    },
  };
}
