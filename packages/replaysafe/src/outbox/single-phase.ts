import { boundedTransaction, STEP_MS } from '../ports/bounded-transaction.js';
import { randomUUID } from 'node:crypto';
import { hasCode } from '../errors.js';
import {
  announceClaim,
  EMPTY_BATCH,
  publishClaimed,
  releaseAll,
  resultOf,
  type BatchContext,
  type BatchResult,
  type ClaimSize,
} from './batch.js';
import { claimRows, uuidArray } from './claim.js';
import { announce, NOTHING_RECORDED, recordBatch, type Recorded, type Settled } from './record.js';

/** How much longer than the publish the server waits before it ends a session that says nothing, in milliseconds. */
const IDLE_MARGIN_MS = 5_000;

/**
 * Claims, publishes and marks in one transaction, which stays open while the broker is asked. A relay that dies anywhere
 * in between leaves the rows as they were, at once; what it had published is published again.
 */
export async function runSinglePhase(context: BatchContext, size: ClaimSize): Promise<BatchResult> {
  const { relay, statements, publishTimeoutMs, logger } = context;
  const mode = 'single-phase';
  const claimToken = randomUUID();
  let batch: readonly Settled[] = [];
  let recorded: Recorded;
  try {
    recorded = await boundedTransaction(
      context,
      publishTimeoutMs + STEP_MS,
      async (tx) => {
        const rows = await claimRows(tx, statements.lock, [size.rows, size.freshShare]);
        if (rows.length === 0) return NOTHING_RECORDED;
        announceClaim(relay, mode, rows);
        batch = context.stopping.aborted ? releaseAll(rows) : await publishClaimed(context, claimToken, rows);
        return recordBatch(tx, statements, mode, claimToken, batch);
      },
      { idleTimeoutMs: publishTimeoutMs + IDLE_MARGIN_MS },
    );
  } catch (error) {
    if (!hasCode(error, 'RS_TX_OUTCOME_UNKNOWN') || batch.length === 0) throw error;
    recorded = { ...NOTHING_RECORDED, published: await lookUp(context, claimToken, batch) };
    // Not found is not the same as rolled back (P2): the rows are still locked or due again, the next claim finds out.
    if (recorded.published.length === 0) throw error;
  }
  if (batch.length === 0) return EMPTY_BATCH;
  announce(relay, mode, recorded, logger);
  return resultOf(batch, recorded);
}

/** After an interrupted COMMIT: which rows carry this claim's mark. */
async function lookUp(context: BatchContext, claimToken: string, batch: readonly Settled[]): Promise<string[]> {
  const ids = batch.flatMap(({ row, settlement }) => (settlement.kind === 'published' ? [row.id] : []));
  return boundedTransaction(context, STEP_MS, async (tx) => {
    const { rows } = await tx.query<{ id: string }>(context.statements.findMarked, [uuidArray(ids), claimToken]);
    return rows.map(({ id }) => id);
  });
}
