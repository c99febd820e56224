import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { oneOf, parseOptions, port, schemaName } from '../options.js';
import { type Enqueue, type OutboxEvent } from '../ports/enqueue.js';
import {
  isPortTransaction,
  orMigratePending,
  poolHint,
  SQL_PORT_METHODS,
  type SqlExecutor,
  type SqlPort,
  type SqlResult,
  sqlState,
  type SqlTransaction,
} from '../ports/sql.js';
import { encodeEvent, type EventRow } from './event.js';
import { outboxSql, type OutboxSql } from './sql.js';

export interface OutboxOptions<Tx> {
  readonly sql: SqlPort<Tx>;
  /** Schema of the library's tables. Default `replaysafe`. */
  readonly schema?: string;
  /**
   * What an event with an id that the outbox already holds does. `refuse` (default): RS_OUTBOX_EVENT_INVALID, and the
   * caller's transaction is aborted, since a second business change with the id of a first is a mistake. `ignore`: the
   * first one stays, the second is dropped silently; for writers whose ids derive from what they handle, such as dead
   * letters, where the second can only be a repetition. It holds as long as the first row is kept.
   */
  readonly duplicateId?: 'refuse' | 'ignore';
}

export interface OutboxStatus {
  readonly pending: number;
  /** Claimed by a two-phase relay. */
  readonly publishing: number;
  /** Given up on. */
  readonly dead: number;
  /** Only where it was asked for: counting published rows reads the whole table. */
  readonly published?: number;
  /** Milliseconds since the oldest event that is due and open was written, by the database's clock; 0 without one. */
  readonly oldestOpenAgeMs: number;
}

export interface Outbox<Tx> {
  /**
   * Writes one event or many in one statement, inside the caller's transaction: the driver's own handle (for `pg` a
   * client on which BEGIN was sent), or a transaction of the SQL port. The statement is handed to the driver in the tick
   * of the call, so that it stands before a COMMIT sent next. Await it before the end of the transaction all the same:
   * one that comes after the caller has given its client back commits in whatever transaction that client has next.
   *
   * The ids come back in the order of the events, which is also their order of writing.
   * @throws RS_OUTBOX_NO_TRANSACTION, RS_OUTBOX_EVENT_INVALID, RS_MIGRATE_PENDING
   */
  readonly enqueue: Enqueue<Tx | SqlTransaction<Tx>>;
  /**
   * Cheap enough to be asked every few seconds, unless published rows are to be counted.
   * @throws RS_MIGRATE_PENDING
   */
  status(options?: { readonly countPublished?: boolean }): Promise<OutboxStatus>;
}

const UNIQUE_VIOLATION = '23505';

/**
 * The producer's side of the outbox. An event of a committed transaction is published at least once by a relay; one of a
 * transaction that was rolled back never is.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createOutbox<Tx>(options: OutboxOptions<Tx>): Outbox<Tx> {
  const { sql, schema, duplicateId } = parseOptions(
    'createOutbox',
    {
      sql: port<SqlPort<Tx>>(SQL_PORT_METHODS, undefined, poolHint),
      schema: schemaName(),
      duplicateId: oneOf(['refuse', 'ignore'], 'refuse'),
    },
    options,
  );
  const statements = outboxSql(`"${schema}"`);

  return {
    async enqueue(tx, given) {
      const events: readonly OutboxEvent[] = Array.isArray(given) ? given : [given as OutboxEvent];
      const executor = isPortTransaction(tx) ? tx : sql.join(tx);
      const rows = events.map((event, index) => encodeEvent(event, index + 1));
      if (rows.length === 0) return [];
      const written = await insert(executor, statements.enqueue[duplicateId], rows);
      // `ignore` answers no row for a single event that is there already; its id was given.
      const ids = rows.map((row, index) => ({ id: written[index]?.id ?? row.id ?? '' }));
      emit('outbox.enqueued', { ids: ids.map(({ id }) => id), topics: [...new Set(rows.map(({ topic }) => topic))] });
      return ids;
    },

    async status({ countPublished = false } = {}) {
      const ask = async <Row>(text: string): Promise<SqlResult<Row>> => {
        try {
          return await sql.query<Row>(text);
        } catch (error) {
          throw orMigratePending(error);
        }
      };
      const { rows } = await ask<StatusRow>(statements.status);
      const counted = countPublished ? await ask<{ published: string }>(statements.countPublished) : undefined;
      const row = rows[0] as StatusRow;
      return {
        pending: Number(row.pending),
        publishing: Number(row.publishing),
        dead: Number(row.dead),
        ...(counted && { published: Number(counted.rows[0]?.published) }),
        oldestOpenAgeMs: row.oldest_ms,
      };
    },
  };
}

interface StatusRow {
  readonly pending: string;
  readonly publishing: string;
  readonly dead: string;
  readonly oldest_ms: number;
}

async function insert(
  executor: SqlExecutor,
  statement: OutboxSql['enqueue']['refuse'],
  rows: readonly EventRow[],
): Promise<readonly { readonly id: string }[]> {
  const [only] = rows;
  try {
    const result =
      rows.length === 1 && only
        ? await executor.query<{ id: string }>(statement.one, [
            only.id,
            only.topic,
            only.type,
            only.aggregateType,
            only.key,
            only.payload,
            only.contentType,
            JSON.stringify(only.headers),
            only.availableAt,
          ])
        : await executor.query<{ id: string }>(statement.many, [JSON.stringify(rows.map(asJson))]);
    return result.rows;
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw orMigratePending(error);
    throw new ReplaysafeError('RS_OUTBOX_EVENT_INVALID', { detail: 'its id is in the outbox already', cause: error });
  }
}

function asJson(row: EventRow, n: number): object {
  return {
    n,
    id: row.id,
    topic: row.topic,
    event_type: row.type,
    aggregate_type: row.aggregateType,
    aggregate_id: row.key,
    payload: row.payload?.toString('base64') ?? null,
    content_type: row.contentType,
    headers: row.headers,
    next_attempt_at: row.availableAt,
  };
}
