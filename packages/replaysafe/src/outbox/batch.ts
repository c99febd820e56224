import { emit, type RelayModeName } from '../events.js';
import { type Clock } from '../ports/clock.js';
import type { Publisher } from '../ports/broker.js';
import type { Logger } from '../ports/logger.js';
import { type SqlPort } from '../ports/sql.js';
import { toRecord, type ClaimedRow } from './claim.js';
import { publishBatch } from './publish.js';
import type { Recorded, Settled } from './record.js';
import type { OutboxSql } from './sql.js';
import { settle, type FailurePolicy } from './states.js';

/** What both relay modes work with. */
export interface BatchContext {
  readonly relay: string;
  readonly sql: SqlPort;
  readonly statements: OutboxSql;
  readonly publisher: Publisher;
  readonly publishTimeoutMs: number;
  readonly leaseMs: number;
  readonly policy: FailurePolicy;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Start nothing new. */
  readonly stopping: AbortSignal;
  /** Give up what is under way. */
  readonly abandon: AbortSignal;
}

/** How many rows a claim takes at most, and how many of them are kept for rows due at once. */
export interface ClaimSize {
  readonly rows: number;
  readonly freshShare: number;
}

export interface BatchResult {
  readonly claimed: number;
  readonly published: number;
  /** The broker took nothing, and not because of the records or their topics. */
  readonly refused: boolean;
}

export const EMPTY_BATCH: BatchResult = { claimed: 0, published: 0, refused: false };

/** Publishes claimed rows and decides what is to be written for each. */
export async function publishClaimed(
  context: BatchContext,
  claimToken: string,
  rows: readonly ClaimedRow[],
): Promise<readonly Settled[]> {
  const { relay, publisher, clock, publishTimeoutMs, abandon, policy } = context;
  const records = rows.map((row) => toRecord(row, claimToken));
  const answer = await publishBatch({ publisher, clock, timeoutMs: publishTimeoutMs, abandon }, records);
  const batch = rows.flatMap((row, index): Settled[] => {
    const outcome = answer.outcomes[index];
    return outcome ? [{ row, settlement: settle(row, outcome, answer.interrupted, policy) }] : [];
  });
  const ids = batch.flatMap(({ row, settlement }) => (settlement.kind === 'published' ? [row.id] : []));
  if (ids.length > 0) emit('outbox.published', { relay, ids, durationMs: answer.durationMs });
  return batch;
}

/** The claim is given back untouched when the stop has come between claim and publish. */
export function releaseAll(rows: readonly ClaimedRow[]): readonly Settled[] {
  return rows.map((row) => ({ row, settlement: { kind: 'released' } }));
}

export function resultOf(batch: readonly Settled[], recorded: Recorded): BatchResult {
  return {
    claimed: batch.length,
    published: recorded.published.length,
    refused:
      batch.length > 0 &&
      batch.every(({ settlement }) => settlement.kind === 'failed' && settlement.outcome !== 'topic-refused'),
  };
}

export function announceClaim(relay: string, mode: RelayModeName, rows: readonly ClaimedRow[]): void {
  emit('outbox.claimed', { relay, ids: rows.map(({ id }) => id), mode });
}
