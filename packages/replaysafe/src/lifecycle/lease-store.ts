import { boundedTransaction } from '../ports/bounded-transaction.js';
import { type Clock } from '../ports/clock.js';
import {
  isContentionState,
  orMigratePending,
  sqlState,
  type SqlExecutor,
  type SqlPort,
  type SqlTransaction,
} from '../ports/sql.js';
import { judgeLease, type LeaseRow, type LeaseVerdict, type Turn } from './lease-states.js';
import { leaseSql } from './sql.js';

export interface LeaseStoreSettings<Tx> {
  readonly sql: SqlPort<Tx>;
  readonly schema: string;
  readonly clock: Clock;
  /** The worker's. */
  readonly name: string;
  /** This worker of this process. */
  readonly owner: string;
  readonly leaseMs: number;
}

export interface Claimed {
  readonly kind: 'claimed';
  readonly epoch: bigint;
  /** Runs that failed in a row before this one, on any pod. */
  readonly failures: number;
  /** Whose run was begun and not ended. */
  readonly takenFrom: string | undefined;
}

interface Row {
  readonly owner: string | null;
  readonly epoch: string;
  readonly failures: number;
  readonly held_ms: number | null;
  readonly due_in_ms: number | null;
  readonly slot_ms: number | null;
}

/** Bounds of one step at the database, in milliseconds: nothing here is worth a longer wait. */
const CLAIM_MS = 5_000;
const LOCK_MS = 2_000;
/** How long after a lost race a pod looks again. */
const RACE_MS = 100;

/**
 * The lease of one worker, in words of the protocol. Each verb is a transaction of its own and throws RS_MIGRATE_PENDING when
 * the table is missing, RS_SQL_UNAVAILABLE when the database cannot be reached.
 */
export class LeaseStore<Tx> {
  readonly #settings: LeaseStoreSettings<Tx>;
  readonly #text: ReturnType<typeof leaseSql>;

  constructor(settings: LeaseStoreSettings<Tx>) {
    this.#settings = settings;
    this.#text = leaseSql(settings.schema);
  }

  async claim(turn: Turn): Promise<Claimed | Exclude<LeaseVerdict, { kind: 'take' }>> {
    const { name, owner, leaseMs } = this.#settings;
    const everyMs = turn.kind === 'interval' ? turn.everyMs : null;
    const slotMs = turn.kind === 'slot' ? (turn.slotMs ?? null) : null;
    try {
      return await this.#step(CLAIM_MS, async (tx) => {
        const row = rowOf((await tx.query<Row>(this.#text.look, [name, everyMs])).rows[0]);
        const verdict = judgeLease(row, turn, owner);
        if (verdict.kind !== 'take') return verdict;
        const { rowCount } =
          row === undefined
            ? await tx.query(this.#text.create, [name, owner, leaseMs, slotMs])
            : await tx.query(this.#text.take, [name, owner, leaseMs, slotMs, String(row.epoch)]);
        if (rowCount !== 1) return { kind: 'wait', waitMs: RACE_MS };
        return {
          kind: 'claimed',
          epoch: row === undefined ? 1n : row.epoch + 1n,
          failures: row?.failures ?? 0,
          takenFrom: row?.owner ?? undefined,
        };
      });
    } catch (error) {
      // A run of before has checked the lease and not committed yet: it is not ours until it has.
      if (isContentionState(sqlState(error))) return { kind: 'wait', waitMs: RACE_MS };
      throw error;
    }
  }

  /** Where no pod has run it yet: not before the interval is over. */
  async postpone(everyMs: number): Promise<void> {
    await this.#step(CLAIM_MS, (tx) => tx.query(this.#text.postpone, [this.#settings.name, everyMs]));
  }

  /** @returns false when the lease is another's; so do the next two */
  renew(epoch: bigint, boundMs: number): Promise<boolean> {
    return this.#change(boundMs, this.#text.renew, epoch, [this.#settings.leaseMs]);
  }

  release(epoch: bigint, failures: number, backOffMs: number | undefined): Promise<boolean> {
    return this.#change(CLAIM_MS, this.#text.release, epoch, [failures, backOffMs ?? null]);
  }

  surrender(epoch: bigint): Promise<boolean> {
    return this.#change(CLAIM_MS, this.#text.surrender, epoch, []);
  }

  /** Whether the lease is still ours, and stays so until the given transaction has ended. */
  async check(tx: Tx | SqlTransaction<Tx>, epoch: bigint): Promise<boolean> {
    const { sql, name, owner } = this.#settings;
    const executor: SqlExecutor = isPortTransaction(tx) ? tx : sql.join(tx);
    try {
      return (await executor.query(this.#text.check, [name, owner, String(epoch)])).rowCount === 1;
    } catch (error) {
      throw orMigratePending(error);
    }
  }

  async #change(boundMs: number, text: string, epoch: bigint, rest: readonly unknown[]): Promise<boolean> {
    const { name, owner } = this.#settings;
    const { rowCount } = await this.#step(boundMs, (tx) => tx.query(text, [name, owner, String(epoch), ...rest]));
    return rowCount === 1;
  }

  #step<T>(boundMs: number, fn: (tx: SqlTransaction) => Promise<T>): Promise<T> {
    return boundedTransaction({ sql: this.#settings.sql, clock: this.#settings.clock }, boundMs, fn, {
      lockTimeoutMs: Math.min(LOCK_MS, boundMs),
    });
  }
}

function rowOf(row: Row | undefined): LeaseRow | undefined {
  return (
    row && {
      owner: row.owner,
      epoch: BigInt(row.epoch),
      failures: row.failures,
      heldMs: row.held_ms,
      dueInMs: row.due_in_ms,
      slotMs: row.slot_ms,
    }
  );
}

function isPortTransaction<Tx>(tx: Tx | SqlTransaction<Tx>): tx is SqlTransaction<Tx> {
  return typeof tx === 'object' && tx !== null && 'savepoint' in tx && 'xid' in tx && 'query' in tx;
}
