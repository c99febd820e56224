import { randomUUID } from 'node:crypto';
import { boundedTransaction, STEP_MS } from '../ports/bounded-transaction.js';
import { type Clock } from '../ports/clock.js';
import { type SqlPort } from '../ports/sql.js';
import { type TaskSql } from './sql.js';
import { type Settlement, type TaskState } from './states.js';

/** A task in this worker's hands. */
export interface ClaimedTask {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly bytes: Uint8Array;
  readonly traceparent: string | undefined;
  readonly attempt: number;
  readonly failures: number;
  readonly maxFailures: number;
  /** For how long the other side may have known the key, in milliseconds, by the database's clock. */
  readonly knownMs: number;
  /** The fence: whatever is written about this try must find it in the row (P10). */
  readonly token: string;
}

/** The end of a try. */
export interface TryEnd {
  readonly task: ClaimedTask;
  readonly settlement: Settlement;
}

export interface Recovered {
  readonly id: string;
  readonly kind: string;
  readonly status: TaskState;
}

/** The worker's statements, each a transaction of its own. */
export interface Claims {
  /** At most `limit` due tasks of the kinds. */
  claim(kinds: readonly string[], limit: number): Promise<readonly ClaimedTask[]>;
  /** Writes the ends; answers the state of each task that was still ours. */
  settle(ends: readonly TryEnd[]): Promise<ReadonlyMap<string, TaskState>>;
  /** Answers which of them are still ours. */
  renew(tasks: readonly ClaimedTask[]): Promise<ReadonlySet<string>>;
  recover(): Promise<readonly Recovered[]>;
}

interface ClaimedRow {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly input: Uint8Array;
  readonly traceparent: string | null;
  readonly attempts: number;
  readonly failures: number;
  readonly max_failures: number;
  readonly known_ms: number;
}

/** Claims that are ended in one statement. */
const RECOVER_ROWS = 500;

export function createClaims(context: {
  readonly sql: SqlPort;
  readonly clock: Clock;
  readonly statements: TaskSql;
  readonly leaseMs: number;
}): Claims {
  const { statements, leaseMs } = context;
  const run = <Row>(statement: string, params: readonly unknown[]): Promise<readonly Row[]> =>
    boundedTransaction(context, STEP_MS, async (tx) => (await tx.query<Row>(statement, params)).rows);

  return {
    async claim(kinds, limit) {
      const token = randomUUID();
      const rows = await run<ClaimedRow>(statements.claim, [textArray(kinds), limit, token, leaseMs]);
      return rows.map((row) => ({
        id: row.id,
        kind: row.kind,
        key: row.key,
        bytes: row.input,
        traceparent: row.traceparent ?? undefined,
        attempt: row.attempts,
        failures: row.failures,
        maxFailures: row.max_failures,
        knownMs: row.known_ms,
        token,
      }));
    },

    async settle(ends) {
      const rows = await run<{ id: string; status: TaskState }>(statements.settle, [JSON.stringify(ends.map(asJson))]);
      return new Map(rows.map(({ id, status }) => [id, status]));
    },

    async renew(tasks) {
      const held = JSON.stringify(tasks.map(({ id, token }) => ({ id, token })));
      return new Set((await run<{ id: string }>(statements.renew, [held, leaseMs])).map(({ id }) => id));
    },

    recover: () => run<Recovered>(statements.recover, [RECOVER_ROWS]),
  };
}

function asJson({ task: { id, token }, settlement }: TryEnd): object {
  const row = { id, token, given_back: 0, failed: 0 };
  switch (settlement.kind) {
    case 'succeeded': {
      const { result } = settlement;
      return { ...row, status: 'SUCCEEDED', result: result && Buffer.from(result).toString('base64') };
    }
    case 'released':
      return { ...row, status: 'PENDING', given_back: 1 };
    case 'failed':
      return { ...row, status: 'PENDING', failed: 1, delay_ms: settlement.delayMs, error: settlement.error };
    case 'given-up':
      return { ...row, status: 'FAILED', failed: 1, error: settlement.error };
  }
}

/** A list of names as the text of a PostgreSQL array. */
function textArray(names: readonly string[]): string {
  return `{${names.map((name) => `"${name.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`;
}
