import { boundedTransaction, STEP_MS } from '../ports/bounded-transaction.js';
import { emit } from '../events.js';
import { type BatchContext, type BatchResult, type ClaimSize } from './batch.js';
import type { IterationEnd } from '../retry/pace.js';
import type { ParsedRelayOptions } from './relay-options.js';
import { runSinglePhase } from './single-phase.js';
import { outboxSql } from './sql.js';
import { runTwoPhase } from './two-phase.js';

/** Rows tried at a time while the broker takes nothing. */
const PROBE_ROWS = 10;
/** Leases that are returned in one statement. */
const RECOVER_ROWS = 500;
/** Looks for expired leases this often per lease, so that a dead relay's rows flow again well within two leases. */
const LOOKS_PER_LEASE = 3;

/** A relay's life from start(), or the first runOnce(), to the end of stop(). */
export interface Run {
  /** Starts nothing new from here on. */
  stop(): void;
  /** Cuts what is under way. */
  abandon(): void;
  readonly stopping: AbortSignal;
  readonly abandoned: AbortSignal;
  /** Claims, publishes and records one batch. */
  iterate(probing: boolean): Promise<{ readonly result: BatchResult; readonly end: IterationEnd }>;
  /** Remembers a task until it has ended. */
  track<T>(task: Promise<T>): Promise<T>;
  /** Resolves when all tasks have ended, however. */
  ended(): Promise<void>;
  /** Lets go of the lifecycle's signals. */
  close(): void;
}

export function openRun(options: ParsedRelayOptions): Run {
  const { sql, publisher, mode, clock, logger, signals, leaseMs, batchSize } = options;
  const stopping = new AbortController();
  const abandoned = new AbortController();
  const closed = new AbortController();
  const tasks = new Set<Promise<unknown>>();
  let recoveredAtMs: number | undefined;
  let turn = 0;

  follow(signals?.stopping, stopping, closed.signal);
  follow(signals?.deadline, abandoned, closed.signal);

  const context: BatchContext = {
    relay: options.name,
    sql,
    statements: outboxSql(`"${options.schema}"`),
    publisher,
    publishTimeoutMs: options.publishTimeoutMs,
    leaseMs,
    policy: { ...options.backoff, ...options },
    clock,
    logger,
    stopping: stopping.signal,
    abandon: abandoned.signal,
  };

  /** In both modes, since a relay of the other mode may have left claims behind. */
  const recoverWhenDue = async (): Promise<void> => {
    const nowMs = clock.monotonicMs();
    if (recoveredAtMs !== undefined && nowMs - recoveredAtMs < leaseMs / LOOKS_PER_LEASE) return;
    while (!stopping.signal.aborted) {
      const { rows } = await boundedTransaction(context, STEP_MS, (tx) =>
        tx.query<{ id: string }>(context.statements.recover, [RECOVER_ROWS]),
      );
      if (rows.length > 0) {
        logger.info(
          { relay: options.name, count: rows.length },
          'claims of another relay ran out and are pending again',
        );
        emit('outbox.recovered', { relay: options.name, ids: rows.map(({ id }) => id) });
      }
      if (rows.length < RECOVER_ROWS) break;
    }
    recoveredAtMs = nowMs;
  };

  /** The odd row of an odd batch goes to the lanes in turn, or a batch of one row would starve one of them. */
  const nextSize = (probing: boolean): ClaimSize => {
    const rows = probing ? Math.min(PROBE_ROWS, batchSize) : batchSize;
    turn = 1 - turn;
    return { rows, freshShare: Math.floor((rows + turn) / 2) };
  };

  return {
    stop: () => {
      stopping.abort();
    },
    abandon: () => {
      abandoned.abort();
    },
    stopping: stopping.signal,
    abandoned: abandoned.signal,
    async iterate(probing) {
      await recoverWhenDue();
      const size = nextSize(probing);
      const result = await (mode === 'single-phase' ? runSinglePhase(context, size) : runTwoPhase(context, size));
      return { result, end: endOf(result, size) };
    },
    track(task) {
      tasks.add(task);
      const forget = (): void => {
        tasks.delete(task);
      };
      task.then(forget, forget);
      return task;
    },
    async ended() {
      await Promise.allSettled([...tasks]);
    },
    close: () => {
      closed.abort();
    },
  };
}

function endOf(result: BatchResult, size: ClaimSize): IterationEnd {
  if (result.claimed === 0) return 'empty';
  if (result.refused) return 'refused';
  return result.claimed < size.rows ? 'partial' : 'full';
}

function follow(source: AbortSignal | undefined, target: AbortController, closed: AbortSignal): void {
  if (source?.aborted) target.abort();
  source?.addEventListener(
    'abort',
    () => {
      target.abort();
    },
    { once: true, signal: closed },
  );
}
