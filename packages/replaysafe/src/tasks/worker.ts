import { hasCode } from '../errors.js';
import { emit } from '../events.js';
import { pause } from '../ports/clock.js';
import { guardedLogger } from '../ports/guarded-logger.js';
import { type Resource } from '../ports/stop.js';
import { FIRST_PACE, nextPace, type IterationEnd, type Pace } from '../retry/pace.js';
import { announceEnds, announceRecovered } from './announce.js';
import { createClaims, type TryEnd } from './claims.js';
import { type TaskKind, type TaskKinds } from './kind.js';
import { taskSql } from './sql.js';
import { beginTry, type Try } from './try.js';
import { parseWorkerOptions, type TaskWorkerOptions } from './worker-options.js';

export interface TaskWorker extends Resource {
  /** Begins to run tasks, in the background. An outage of the database does not end it: it backs off and goes on. */
  start(): void;
  /**
   * Claims nothing more and waits for the tasks under way. When `deadline` aborts, their signals do, and they go back at
   * once without having used up an attempt.
   */
  stop(deadline?: AbortSignal): Promise<void>;
  /** A hint that a task was committed: ends the wait of an idle worker. Nothing depends on it. */
  wake(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Renewals, and looks for claims of dead workers, for each lease: two may fail before it runs out. */
const LOOKS_PER_LEASE = 3;
/** After the stop's deadline: time for giving back what is held. */
const LAST_STEPS_MS = 1_500;

/**
 * Runs the tasks of the kinds that it has handlers for, each again and again with the same key and the same input until it
 * has succeeded or is given up on. Any number of workers may run; no I/O before start().
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createTaskWorker<Kinds extends TaskKinds>(options: TaskWorkerOptions<Kinds>): TaskWorker {
  const parsed = parseWorkerOptions(options);
  const { name, clock, random, leaseMs, concurrency, signals, handlers } = parsed;
  const logger = guardedLogger(parsed.logger);
  const kinds: Readonly<Record<string, TaskKind>> = parsed.kinds;
  const handled = Object.keys(handlers);
  const statements = taskSql(`"${parsed.schema}"`);
  const claims = createClaims({ ...parsed, statements });
  const running = new Set<Try>();
  let ends: TryEnd[] = [];
  let bell = new AbortController();
  let over = new AbortController();
  let stopping = false;
  let hinted = false;
  let life: Promise<void> | undefined;
  let stopped: Promise<void> | undefined;

  const ring = (): void => {
    bell.abort();
  };
  const wake = (): void => {
    hinted = true;
    ring();
  };

  const tryContext = {
    clock,
    logger,
    statements,
    policy: { ...parsed.backoff, random },
    onEnd: (ended: Try, settlement: TryEnd['settlement'] | undefined): void => {
      running.delete(ended);
      if (ended.lost) emit('task.fenced', { worker: name, count: 1 });
      else if (settlement) ends.push({ task: ended.task, settlement });
      else emit('task.succeeded', { worker: name, ids: [ended.task.id] });
      ring();
    },
  };

  const claimFree = async (): Promise<IterationEnd | undefined> => {
    const free = concurrency - running.size;
    if (stopping || free <= 0) return undefined;
    const askedAtMs = clock.monotonicMs();
    const tasks = await claims.claim(handled, free);
    if (tasks.length === 0) return 'empty';
    emit('task.claimed', { worker: name, ids: tasks.map(({ id }) => id) });
    for (const task of tasks) {
      const kind = kinds[task.kind];
      const handler = handlers[task.kind];
      if (!kind || !handler) continue;
      const begun = beginTry(tryContext, task, kind, handler);
      begun.leasedUntilMs = askedAtMs + leaseMs;
      running.add(begun);
      if (over.signal.aborted) begun.interrupt();
    }
    return tasks.length < free ? 'partial' : 'full';
  };

  const settleEnds = async (): Promise<void> => {
    if (ends.length === 0) return;
    const batch = ends;
    ends = [];
    try {
      announceEnds(name, logger, batch, await claims.settle(batch));
    } catch (error) {
      // Kept, and written with the next: while the lease holds, what was done shall not be done again.
      ends = [...batch, ...ends];
      throw error;
    }
  };

  const iterate = async (pace: Pace, mayClaim: boolean): Promise<Pace> => {
    let end: IterationEnd | undefined;
    // Side by side, on two connections: the tasks that are claimed do not wait for those that have ended.
    const [settled, claimed] = await Promise.allSettled([settleEnds(), mayClaim ? claimFree() : undefined]);
    if (claimed.status === 'fulfilled') end = claimed.value;
    for (const { reason } of [settled, claimed].filter((result) => result.status === 'rejected')) {
      end = 'errored';
      reportFailure(reason);
    }
    return end === undefined ? pace : nextPace(pace, end, { ...parsed, ...parsed.backoff, random });
  };

  const reportFailure = (error: unknown): void => {
    emit('task.errored', { worker: name, error });
    if (hasCode(error, 'RS_MIGRATE_PENDING')) {
      logger.error(
        { worker: name, code: error.code, err: error },
        `${error.message}; the worker backs off and tries again`,
      );
    } else {
      logger.warn({ worker: name, err: error }, 'an iteration of the task worker failed; it backs off and goes on');
    }
  };

  const work = async (): Promise<void> => {
    logger.info({ worker: name, kinds: handled }, 'task worker started');
    let pace = FIRST_PACE;
    let dueAtMs = 0;
    while (!stopping || running.size > 0 || ends.length > 0) {
      bell = new AbortController();
      // A hint does not cut a back-off short.
      if (hinted && pace.wakeable) dueAtMs = 0;
      hinted = false;
      const nowMs = clock.monotonicMs();
      const full = running.size >= concurrency;
      const mayClaim = !stopping && !full && nowMs >= dueAtMs;
      if (mayClaim || (ends.length > 0 && pace.troubles === 0) || nowMs >= dueAtMs) {
        const before = pace;
        pace = await iterate(pace, mayClaim);
        if (pace !== before) dueAtMs = clock.monotonicMs() + pace.waitMs;
      }
      if (over.signal.aborted && running.size === 0 && pace.troubles > 0) return;
      const idleMs = stopping || running.size >= concurrency ? parsed.pollIdleMs : dueAtMs - clock.monotonicMs();
      const nothingToWrite = ends.length === 0 || pace.troubles > 0;
      if (nothingToWrite && idleMs > 0) {
        await pause(clock, idleMs, bell.signal);
      }
    }
    logger.info({ worker: name }, 'task worker stopped');
  };

  const keepLeases = async (): Promise<void> => {
    const everyMs = Math.max(1, Math.floor(leaseMs / LOOKS_PER_LEASE));
    const ended = over.signal;
    while (!ended.aborted) {
      try {
        if (!stopping) announceRecovered(name, logger, await claims.recover());
        const held = [...running].filter(({ completing }) => !completing);
        const askedAtMs = clock.monotonicMs();
        const ours = held.length > 0 ? await claims.renew(held.map(({ task }) => task)) : new Set<string>();
        for (const each of held) {
          if (ours.has(each.task.id)) each.leasedUntilMs = askedAtMs + leaseMs;
          else if (running.has(each) && !each.completing) each.lose();
        }
      } catch (error) {
        reportFailure(error);
      }
      for (const each of running) {
        if (!each.completing && each.leasedUntilMs <= clock.monotonicMs()) each.lose();
      }
      await pause(clock, everyMs, ended);
    }
  };

  const abandon = (): void => {
    over.abort();
    for (const each of [...running]) each.interrupt();
    ring();
  };
  const beginStop = (): void => {
    stopping = true;
    ring();
  };

  const start = (): void => {
    if (life !== undefined || stopped !== undefined || signals?.stopping.aborted) return;
    over = new AbortController();
    signals?.stopping.addEventListener('abort', beginStop, { once: true, signal: over.signal });
    signals?.deadline.addEventListener('abort', abandon, { once: true, signal: over.signal });
    const leases = keepLeases();
    life = work().finally(async () => {
      over.abort();
      await leases;
    });
  };

  const stop = async (deadline?: AbortSignal): Promise<void> => {
    beginStop();
    if (life === undefined) return;
    const ended = new AbortController();
    const late = new Promise<void>((resolve) => {
      const leaveSoon = (): void => void pause(clock, LAST_STEPS_MS, ended.signal).then(resolve);
      if (over.signal.aborted) leaveSoon();
      else over.signal.addEventListener('abort', leaveSoon, { once: true });
    });
    if (deadline?.aborted) abandon();
    else deadline?.addEventListener('abort', abandon, { once: true, signal: ended.signal });
    await Promise.race([life, late]);
    ended.abort();
  };

  return {
    name,
    start,
    stop: (deadline) => (stopped ??= stop(deadline)),
    wake,
    [Symbol.asyncDispose]: () => (stopped ??= stop()),
  };
}
