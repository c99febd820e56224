import { emit, type RelayModeName } from '../events.js';
import type { Logger } from '../ports/logger.js';
import type { SqlExecutor } from '../ports/sql.js';
import { uuidArray, type ClaimedRow } from './claim.js';
import type { OutboxSql } from './sql.js';
import type { DeadReason, FailedSettlement, Settlement } from './states.js';

/** A row and what is to be written for it. */
export interface Settled {
  readonly row: ClaimedRow;
  readonly settlement: Settlement;
}

/** A row that was not published, and what is said of it. */
interface Told {
  readonly id: string;
  readonly topic: string;
  readonly error: string;
}

/** What has been written: only what the database has confirmed. */
export interface Recorded {
  readonly published: readonly string[];
  readonly failed: readonly (Told & { readonly outcome: FailedSettlement['outcome'] })[];
  readonly dead: readonly (Told & { readonly reason: DeadReason })[];
  readonly released: readonly string[];
  /** Rows that were not ours any more. */
  readonly fenced: number;
}

export const NOTHING_RECORDED: Recorded = { published: [], failed: [], dead: [], released: [], fenced: 0 };

/** Writes the outcomes of one batch; each row only where it is still held by this claim. */
export async function recordBatch(
  executor: SqlExecutor,
  statements: OutboxSql,
  mode: RelayModeName,
  claimToken: string,
  batch: readonly Settled[],
): Promise<Recorded> {
  const published: string[] = [];
  const released: string[] = [];
  const failures: { id: string; topic: string; settlement: Extract<Settlement, { kind: 'failed' | 'dead' }> }[] = [];
  for (const { row, settlement } of batch) {
    if (settlement.kind === 'published') published.push(row.id);
    else if (settlement.kind === 'released') released.push(row.id);
    else failures.push({ id: row.id, topic: row.topic, settlement });
  }
  const write = async (statement: string, list: string): Promise<ReadonlySet<string>> => {
    const { rows } = await executor.query<{ id: string }>(statement, [list, claimToken]);
    return new Set(rows.map(({ id }) => id));
  };
  const none: ReadonlySet<string> = new Set();
  const marked = published.length > 0 ? await write(statements.markPublished(mode), uuidArray(published)) : none;
  const failed =
    failures.length > 0 ? await write(statements.markFailed(mode), JSON.stringify(failures.map(asJson))) : none;
  // Single-phase has nothing to give back: the rows are free when the transaction ends.
  const freed =
    mode === 'single-phase'
      ? new Set(released)
      : released.length > 0
        ? await write(statements.release, uuidArray(released))
        : none;
  const kept = failures.filter(({ id }) => failed.has(id));
  return {
    published: published.filter((id) => marked.has(id)),
    failed: kept.flatMap(({ id, topic, settlement }) =>
      settlement.kind === 'failed' ? [{ id, topic, outcome: settlement.outcome, error: settlement.error }] : [],
    ),
    dead: kept.flatMap(({ id, topic, settlement }) =>
      settlement.kind === 'dead' ? [{ id, topic, reason: settlement.reason, error: settlement.error }] : [],
    ),
    released: released.filter((id) => freed.has(id)),
    fenced: batch.length - marked.size - failed.size - freed.size,
  };
}

function asJson({
  id,
  settlement,
}: {
  id: string;
  settlement: Extract<Settlement, { kind: 'failed' | 'dead' }>;
}): object {
  return {
    id,
    status: settlement.kind === 'dead' ? 'DEAD' : 'PENDING',
    delay_ms: settlement.kind === 'failed' ? settlement.delayMs : null,
    refused: settlement.refused,
    error: settlement.error,
  };
}

/** Publishes the events of what is committed, the good news first. */
export function announce(relay: string, mode: RelayModeName, recorded: Recorded, logger: Logger): void {
  const { published, released, fenced } = recorded;
  if (published.length > 0) emit('outbox.marked', { relay, ids: published, mode });
  for (const [outcome, entries] of grouped(recorded.failed, ({ outcome }) => outcome)) {
    const ids = entries.map(({ id }) => id);
    const fields = { relay, outcome, count: ids.length, ...summary(entries) };
    logger.warn(fields, 'events were not accepted and will be tried again');
    emit('outbox.failed', { relay, ids, outcome });
  }
  for (const [reason, entries] of grouped(recorded.dead, ({ reason }) => reason)) {
    const ids = entries.map(({ id }) => id);
    logger.error(
      { relay, reason, ids, ...summary(entries) },
      'events were given up on; they stay in the outbox as DEAD',
    );
    emit('outbox.dead', { relay, ids, reason });
  }
  if (released.length > 0) emit('outbox.released', { relay, ids: released });
  if (fenced > 0) {
    logger.warn({ relay, count: fenced }, 'another relay had claimed events meanwhile; their outcome is left to it');
    emit('outbox.fenced', { relay, count: fenced });
  }
}

/** Most topics that one line names. */
const TOPICS_SHOWN = 10;

/** What one needs in order to act. The errors of one batch and outcome are mostly the same: the first speaks for all. */
function summary(entries: readonly Told[]): { readonly topics: readonly string[]; readonly error: string | undefined } {
  const topics = [...new Set(entries.map(({ topic }) => topic))];
  return { topics: topics.slice(0, TOPICS_SHOWN), error: entries[0]?.error };
}

function grouped<Entry, Key>(entries: readonly Entry[], keyOf: (entry: Entry) => Key): Map<Key, Entry[]> {
  const groups = new Map<Key, Entry[]>();
  for (const entry of entries) {
    const group = groups.get(keyOf(entry));
    if (group) group.push(entry);
    else groups.set(keyOf(entry), [entry]);
  }
  return groups;
}
