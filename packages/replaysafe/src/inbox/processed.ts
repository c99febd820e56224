import { isMissingRelation, sqlState, type SqlExecutor, type SqlPort } from '../ports/sql.js';
import { ReplaysafeError } from '../errors.js';
import type { InboxSql } from './sql.js';

export interface Parked {
  readonly eventId: string;
  readonly attempt: number;
  readonly errorCode: string;
  readonly error: string;
}

/** The `processed_event` rows of one consumer. */
export interface ProcessedEvents {
  /** @throws RS_MIGRATE_PENDING when the table is missing */
  assertPresent(): Promise<void>;
  /** The ids that are settled: processed or parked. */
  settled(eventIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** Claims the ids for this transaction and says which of them are fresh. Ids are distinct. */
  claim(
    tx: SqlExecutor,
    rows: readonly { readonly eventId: string; readonly attempt: number }[],
  ): Promise<ReadonlySet<string>>;
  /** `false` when the event is settled already. */
  park(tx: SqlExecutor, parked: Parked): Promise<boolean>;
  /** Takes back rows that a handler's own COMMIT has committed for events that never ran. */
  takeBack(eventIds: readonly string[], xid: string): Promise<void>;
  /** The check that stands last before COMMIT. */
  verification(eventIds: readonly string[]): { readonly text: string; readonly params: readonly unknown[] };
}

export function processedEvents(sql: SqlPort, statements: InboxSql, consumer: string): ProcessedEvents {
  interface Id {
    readonly event_id: string;
  }
  const ids = (rows: readonly Id[]): ReadonlySet<string> => new Set(rows.map((row) => row.event_id));

  return {
    async assertPresent() {
      try {
        await sql.query(statements.present);
      } catch (error) {
        if (!isMissingRelation(sqlState(error))) throw error;
        throw new ReplaysafeError('RS_MIGRATE_PENDING', { cause: error, detail: 'processed_event is missing' });
      }
    },
    async settled(eventIds) {
      return ids((await sql.query<Id>(statements.settled, [consumer, eventIds])).rows);
    },
    async claim(tx, rows) {
      const params = [consumer, rows.map((row) => row.eventId), rows.map((row) => row.attempt)];
      return ids((await tx.query<Id>(statements.claim, params)).rows);
    },
    async park(tx, { eventId, attempt, errorCode, error }) {
      const { rows } = await tx.query(statements.park, [consumer, eventId, attempt, errorCode, error]);
      return rows.length === 1;
    },
    async takeBack(eventIds, xid) {
      await sql.query(statements.takeBack, [consumer, eventIds, xid]);
    },
    verification: (eventIds) => ({ text: statements.verify, params: [consumer, eventIds] }),
  };
}
