import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Random } from '../ports/random.js';
import { type StopSignals } from '../ports/stop.js';
import { type HeldLease } from './lease.js';
import { createLeasedRun } from './leased-run.js';
import { LeaseStore } from './lease-store.js';
import { type Turn } from './lease-states.js';
import { type ParsedWorker } from './worker-options.js';
import { cronTimetable, intervalTimetable } from './worker-timetable.js';

export interface WorkerSettings {
  readonly worker: ParsedWorker;
  readonly signals: StopSignals;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface Worker {
  /** Begins the loop; a second call, or one after the stop began, does nothing. */
  start(): void;
  /** Resolves when the running iterations have ended. The loop itself is ended by `signals.stopping`. */
  ended(): Promise<void>;
}

/**
 * Runs a job again and again until the stop: looks before each run whether to stop, and lets a running one finish
 * (R-SHUT-SCHED-1). A run that fails makes the next one wait longer; it never ends the loop.
 */
export function createWorker(settings: WorkerSettings): Worker {
  const { worker, signals, clock, random, logger } = settings;
  const { name, everyMs, nextMoment, firstRun, jitter, overlap, lease } = worker;
  const { stopping, deadline } = signals;
  const running = new Set<Promise<unknown>>();
  let failures = 0;
  let loop: Promise<void> | undefined;

  const waiting = { jitter, clock, random, stopping };
  const timetable =
    nextMoment === undefined
      ? // Of a leased worker the database says when the first run is due.
        intervalTimetable({
          ...waiting,
          everyMs: everyMs ?? 1,
          failures: () => failures,
          firstRun: lease === undefined ? firstRun : 'now',
        })
      : cronTimetable({ ...waiting, firstRun, nextMoment, worker: name, logger });

  /** Resolves with what the run threw. */
  const runOnce = async (held?: HeldLease): Promise<unknown> => {
    const startedAtMs = clock.monotonicMs();
    let error: unknown;
    try {
      const context = { stopping, deadline, logger: withWorker(logger, name, held) };
      await worker.run(held === undefined ? context : { ...context, lease: held });
    } catch (thrown) {
      error = thrown ?? new Error('the run threw nothing');
    }
    failures = error === undefined ? 0 : failures + 1;
    emit('lifecycle.worker-ran', { worker: name, durationMs: clock.monotonicMs() - startedAtMs, error });
    if (error !== undefined)
      logger.warn({ err: error, worker: name, failures }, 'worker run failed; it will run again');
    return error;
  };

  const start = (): Promise<unknown> => {
    const run = runOnce().finally(() => running.delete(run));
    running.add(run);
    return run;
  };

  const alone = async (): Promise<void> => {
    while (await timetable.next()) {
      if (overlap === 1) await start();
      else {
        void start();
        if (running.size >= overlap) await Promise.race(running);
      }
    }
  };

  const overAllProcesses = async (takeTurn: ReturnType<typeof createLeasedRun>): Promise<void> => {
    const takeTurns = async (turn: Turn): Promise<void> => {
      while (!stopping.aborted) {
        const outcome = await takeTurn(turn);
        if (outcome.kind === 'over') return;
        await pause(clock, outcome.waitMs, stopping);
      }
    };
    // What a process that is gone has begun for a moment that is over now.
    if (everyMs === undefined) await takeTurns({ kind: 'slot', slotMs: undefined });
    while (await timetable.next()) {
      await takeTurns(
        everyMs === undefined ? { kind: 'slot', slotMs: timetable.slotMs } : { kind: 'interval', everyMs },
      );
    }
  };

  const runUntilStopped = (): Promise<void> => {
    if (lease === undefined) return alone();
    const { sql, schema, leaseMs } = lease;
    // Readable for whoever looks at the row: in a cluster the host's name is the pod's.
    const owner = `${hostname()}-${randomBytes(6).toString('hex')}`;
    const store = new LeaseStore({ sql, schema, clock, name, owner, leaseMs });
    const run = (held: HeldLease): Promise<unknown> => runOnce(held);
    return overAllProcesses(
      createLeasedRun({
        store,
        worker: name,
        leaseMs,
        jitter,
        everyMs,
        firstRun,
        run,
        signals,
        clock,
        random,
        logger,
      }),
    );
  };

  return {
    start: () => {
      if (!stopping.aborted) loop ??= runUntilStopped();
    },
    ended: async () => {
      await loop;
      await Promise.all(running);
    },
  };
}

function withWorker(logger: Logger, worker: string, held: HeldLease | undefined): Logger {
  const fields = held === undefined ? { worker } : { worker, epoch: String(held.epoch) };
  return {
    debug: (more, message) => {
      logger.debug({ ...fields, ...more }, message);
    },
    info: (more, message) => {
      logger.info({ ...fields, ...more }, message);
    },
    warn: (more, message) => {
      logger.warn({ ...fields, ...more }, message);
    },
    error: (more, message) => {
      logger.error({ ...fields, ...more }, message);
    },
  };
}
