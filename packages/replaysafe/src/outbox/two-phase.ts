import { boundedTransaction, STEP_MS } from '../ports/bounded-transaction.js';
import { randomUUID } from 'node:crypto';
import { hasCode } from '../errors.js';
import { pause } from '../ports/clock.js';
import { backoffDelay } from '../retry/backoff.js';
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
import { claimRows } from './claim.js';
import { keepLease, type Lease } from './lease.js';
import { announce, recordBatch, type Recorded, type Settled } from './record.js';

/**
 * Claims in one transaction, publishes while holding no connection, marks in another. A relay that dies after its claim
 * leaves the rows to their lease. The window in which an event is published and not marked is as wide as in
 * single-phase: receivers have to drop duplicates in both modes (P12).
 */
export async function runTwoPhase(context: BatchContext, size: ClaimSize): Promise<BatchResult> {
  const { relay, statements, leaseMs, logger } = context;
  const mode = 'two-phase';
  const claimToken = randomUUID();
  const rows = await boundedTransaction(context, STEP_MS, (tx) =>
    claimRows(tx, statements.claim, [size.rows, size.freshShare, claimToken, leaseMs]),
  );
  if (rows.length === 0) return EMPTY_BATCH;
  const lease = keepLease(
    context,
    claimToken,
    rows.map(({ id }) => id),
  );
  let batch: readonly Settled[];
  try {
    announceClaim(relay, mode, rows);
    batch = context.stopping.aborted ? releaseAll(rows) : await publishClaimed(context, claimToken, rows);
  } finally {
    await lease.stop();
  }
  const recorded = await recordUntilLeaseEnds(context, claimToken, batch, lease);
  announce(relay, mode, recorded, logger);
  return resultOf(batch, recorded);
}

/**
 * The broker has the events: as long as the lease holds, a database that is away for a moment shall not make them go out
 * again. A repeated mark is harmless, for it finds its own token.
 */
async function recordUntilLeaseEnds(
  context: BatchContext,
  claimToken: string,
  batch: readonly Settled[],
  lease: Lease,
): Promise<Recorded> {
  const { clock, statements, policy, abandon, relay, logger } = context;
  let interrupted = false;
  for (let attempt = 1; ; attempt++) {
    try {
      const recorded = await boundedTransaction(context, STEP_MS, (tx) =>
        recordBatch(tx, statements, 'two-phase', claimToken, batch),
      );
      if (!interrupted) return recorded;
      // Failed and released rows lost their token with a COMMIT that did arrive: they cannot tell that from a fence.
      const unmarked =
        batch.filter(({ settlement }) => settlement.kind === 'published').length - recorded.published.length;
      return { ...recorded, fenced: unmarked };
    } catch (error) {
      interrupted ||= hasCode(error, 'RS_TX_OUTCOME_UNKNOWN');
      const delayMs = backoffDelay({ attempt, baseMs: policy.baseMs, capMs: policy.capMs, random: policy.random });
      if (abandon.aborted || clock.monotonicMs() + delayMs >= lease.until()) throw error;
      logger.warn({ relay, err: error, delayMs }, 'published events could not be marked; it is tried again');
      await pause(clock, delayMs, abandon);
    }
  }
}
