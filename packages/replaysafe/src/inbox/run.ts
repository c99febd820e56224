import { emit } from '../events.js';
import { hasCode, ReplaysafeError } from '../errors.js';
import type { SqlTransaction } from '../ports/sql.js';
import { classify } from './classify.js';
import type { HandleContext } from './consumer-options.js';
import type { InboxEvent } from './event.js';
import type { Item } from './item.js';
import { lateness } from './lateness.js';
import { joinSignals, orAbort, type Lease } from './lease.js';
import type { RunFailure } from './states.js';
import { databaseAnswers, downstreamKey, type Work } from './work.js';

export type RunOutcome =
  | { readonly status: 'committed'; readonly fresh: readonly string[] }
  | {
      readonly status: 'failed';
      readonly failure: RunFailure;
      /** A handler ended the transaction itself; if it did so by COMMIT, these never ran and have dedup rows. */
      readonly stranded: { readonly xid: string; readonly eventIds: readonly string[] } | undefined;
    }
  | { readonly status: 'interrupted' };

/** An event whose turn it is, with its attempts and what `prepare` answered. */
export interface Turn<Prepared> {
  readonly event: InboxEvent;
  readonly attempts: number;
  readonly prepared: Prepared;
}

export interface Place {
  readonly topic: string;
  readonly partition: number;
}

/** What the server's own limits get on top of the handler's, and our waits for the server on top of those. */
const SLACK_MS = 5_000;

/**
 * One transaction over consecutive events of a partition: their dedup rows, the handlers of the fresh ones in offset order, a last
 * look at the rows, COMMIT. An unknown COMMIT is a failure like another (P2): the next run's dedup rows wait for the old
 * transaction and tell.
 */
export async function runTransaction<Tx, Prepared>(
  work: Work<Tx, Prepared>,
  place: Place,
  turns: readonly Turn<Prepared>[],
  lease: Lease,
): Promise<RunOutcome> {
  const { options, processed } = work;
  const limit = options.handlerTimeoutMs;
  const ids = turns.map((turn) => turn.event.id);
  const late = lateness(options.clock);
  const cut = joinSignals(lease.cut, late.signal);

  let where: 'before' | 'inside' = 'before';
  /** Position of the handler that runs. */
  let culprit: number | undefined;
  let begun = 0;
  let fresh: ReadonlySet<string> = new Set();
  let tx: SqlTransaction<Tx> | undefined;
  let transactionFailure: unknown;

  const body = async (opened: SqlTransaction<Tx>): Promise<void> => {
    tx = opened;
    fresh = await processed.claim(
      opened,
      turns.map(({ event, attempts }) => ({ eventId: event.id, attempt: attempts + 1 })),
    );
    where = 'inside';
    for (const [index, turn] of turns.entries()) {
      if (!fresh.has(turn.event.id)) continue;
      culprit = index;
      begun = index + 1;
      late.after(limit, 'RS_INBOX_HANDLER_TIMEOUT');
      const startedAtMs = options.clock.monotonicMs();
      // A hung handler must not hold the partition: its late answer is nobody's, and its transaction is over.
      await orAbort(handleOne(work, opened, turn, cut.signal), cut.signal);
      // One that kept the event loop busy kept the timer from firing; the server may have ended the session meanwhile.
      if (options.clock.monotonicMs() - startedAtMs > limit) throw late.error(limit, 'RS_INBOX_HANDLER_TIMEOUT');
      // What the handler swallowed, before a neighbour writes into a transaction that is over (P1).
      if (opened.failure !== undefined) throw swallowed(opened.failure);
    }
    culprit = undefined;
    late.after(limit + 2 * SLACK_MS, 'RS_TX_OUTCOME_UNKNOWN');
    if (fresh.size === 0) return;
    emit('inbox.handled', { consumer: options.consumer, ...place, eventIds: ids.filter((id) => fresh.has(id)) });
  };

  late.after(limit + 2 * SLACK_MS, 'RS_SQL_UNAVAILABLE');
  try {
    await options.sql.transaction(
      async (opened) => {
        try {
          await body(opened);
        } catch (error) {
          transactionFailure = opened.failure;
          throw error;
        }
      },
      {
        // The server's limits follow the handler's: a slow handler must not look like a lost connection.
        statementTimeoutMs: limit,
        idleTimeoutMs: limit + SLACK_MS,
        deadline: cut.signal,
        verify: processed.verification(ids),
      },
    );
    return { status: 'committed', fresh: ids.filter((id) => fresh.has(id)) };
  } catch (error) {
    const stranded =
      tx !== undefined && hasCode(error, 'RS_TX_LOST')
        ? { xid: tx.xid, eventIds: ids.slice(begun).filter((id) => fresh.has(id)) }
        : undefined;
    if (lease.cut.aborted && stranded === undefined) return { status: 'interrupted' };
    // The port knows only that its deadline came; the reason is ours.
    const reason: unknown = late.signal.aborted ? late.signal.reason : error;
    const evidence = { error: reason, where, culprit, transactionFailure };
    return { status: 'failed', failure: await classify(evidence, () => databaseAnswers(work)), stranded };
  } finally {
    late.cancel();
    cut.dispose();
  }
}

async function handleOne<Tx, Prepared>(
  { options }: Work<Tx, Prepared>,
  tx: SqlTransaction<Tx>,
  { event, attempts, prepared }: Turn<Prepared>,
  signal: AbortSignal,
): Promise<void> {
  const { outbox } = options;
  const context: HandleContext<Tx> = {
    tx: tx.handle,
    sql: tx,
    signal,
    logger: options.logger,
    attempt: attempts + 1,
    keyFor: (step) => downstreamKey(options.consumer, event.id, step),
    savepoint: (fn) => tx.savepoint(fn),
    enqueue: async (events) => {
      if (outbox !== undefined) return outbox.enqueue(tx, events);
      throw new ReplaysafeError('RS_OPTION_REQUIRED', {
        detail: 'createConsumer: ctx.enqueue needs the option outbox',
      });
    },
  };
  await options.handle(event, context, prepared);
}

function swallowed(failure: unknown): unknown {
  if (hasCode(failure, 'RS_TX_LOST', 'RS_TX_ABORTED')) return failure;
  return new ReplaysafeError('RS_TX_ABORTED', { cause: failure });
}

/** The events of a run whose turn it is. */
export function turnsOf<Prepared>(items: readonly Item[]): Turn<Prepared>[] {
  const turns: Turn<Prepared>[] = [];
  for (const { duplicate, content, attempts, preparation } of items) {
    if (duplicate || content.kind !== 'event') continue;
    const prepared = preparation.state === 'ready' ? (preparation.value as Prepared) : (undefined as Prepared);
    turns.push({ event: content.event, attempts, prepared });
  }
  return turns;
}
