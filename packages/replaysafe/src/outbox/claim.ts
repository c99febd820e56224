import { HEADERS, type BrokerRecord } from '../ports/broker.js';
import type { SqlExecutor } from '../ports/sql.js';

/** A row in a relay's hands. */
export interface ClaimedRow {
  readonly id: string;
  readonly seq: bigint;
  readonly failures: number;
  /** For how long the broker has refused the topic of this row, without a break. */
  readonly refusedMs: number | undefined;
  readonly topic: string;
  readonly key: string | null;
  readonly payload: Uint8Array | null;
  readonly headers: Readonly<Record<string, string>>;
}

interface DriverRow {
  readonly id: string;
  readonly seq: string;
  readonly topic: string;
  readonly event_type: string;
  readonly aggregate_type: string | null;
  readonly aggregate_id: string | null;
  readonly payload: Uint8Array | null;
  readonly content_type: string | null;
  readonly headers: string;
  readonly failures: number;
  readonly refused_ms: number | null;
}

/** Runs a claiming statement; the rows come back in the order of writing. */
export async function claimRows(
  executor: SqlExecutor,
  statement: string,
  params: readonly unknown[],
): Promise<readonly ClaimedRow[]> {
  const { rows } = await executor.query<DriverRow>(statement, params);
  return rows.map(readRow).sort((a, b) => (a.seq < b.seq ? -1 : a.seq > b.seq ? 1 : 0));
}

function readRow(row: DriverRow): ClaimedRow {
  return {
    id: row.id,
    seq: BigInt(row.seq),
    failures: row.failures,
    refusedMs: row.refused_ms ?? undefined,
    topic: row.topic,
    key: row.aggregate_id,
    payload: row.payload,
    headers: {
      ...(JSON.parse(row.headers) as Record<string, string>),
      [HEADERS.eventId]: row.id,
      [HEADERS.eventType]: row.event_type,
      ...(row.content_type !== null && { [HEADERS.contentType]: row.content_type }),
      ...(row.aggregate_type !== null && { [HEADERS.aggregateType]: row.aggregate_type }),
    },
  };
}

/** The record as it goes to the broker. The claim token is a diagnostic: consumers drop by event id only (P11). */
export function toRecord(row: ClaimedRow, claimToken: string): BrokerRecord {
  return {
    topic: row.topic,
    key: row.key,
    value: row.payload,
    headers: { ...row.headers, [HEADERS.claimToken]: claimToken },
  };
}

/** A list of UUIDs as the text of a PostgreSQL array. */
export function uuidArray(ids: readonly string[]): string {
  return `{${ids.join(',')}}`;
}
