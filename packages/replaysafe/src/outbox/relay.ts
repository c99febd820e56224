import { hasCode } from '../errors.js';
import { emit } from '../events.js';
import { pause } from '../ports/clock.js';
import type { Resource } from '../ports/stop.js';
import { FIRST_PACE, nextPace, type IterationEnd, type Pace } from '../retry/pace.js';
import { parseRelayOptions, type RelayOptions } from './relay-options.js';
import { openRun, type Run } from './run.js';

export interface Relay extends Resource {
  /** Begins to publish, in the background. An outage of database or broker does not end it: it backs off and goes on. */
  start(): void;
  /**
   * Claims nothing more and waits until the batch under way is published and marked; unpublished claims are given back
   * at once and count as no try. When `deadline` aborts, the publish is cut: what the broker has confirmed by then is
   * marked, the rest given back. Afterwards the relay can be started again.
   */
  stop(deadline?: AbortSignal): Promise<void>;
  /**
   * One iteration, without start(): claims a batch, publishes it and records the outcomes. 0 and 0 while it stops.
   * @throws RS_MIGRATE_PENDING without the tables, else what the database says; the rows are then still in the outbox
   */
  runOnce(): Promise<{ readonly claimed: number; readonly published: number }>;
  /** A hint that events were committed: ends the wait of an idle relay. Costs nothing, and nothing depends on it. */
  wake(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** After the stop's deadline: time for the publisher's last word and for writing down what it said, in milliseconds. */
const LAST_STEPS_MS = 1_500;

/**
 * Publishes the events of the outbox, each at least once. Any number of relays may run; no I/O before start().
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createRelay(options: RelayOptions): Relay {
  const parsed = parseRelayOptions(options);
  const { clock, logger, name, mode, signals } = parsed;
  let run: Run | undefined;
  let loopOf: Run | undefined;
  let bell = new AbortController();

  const wake = (): void => {
    bell.abort();
  };

  const currentRun = (): Run => {
    if (!run) {
      run = openRun(parsed);
      run.stopping.addEventListener('abort', wake, { once: true });
    }
    return run;
  };

  /** Waits as the pace says. A hint is followed by polls that are close together again, in case it came early. */
  const rest = async (current: Run, pace: Pace): Promise<Pace> => {
    if (pace.waitMs === 0) return pace;
    await pause(clock, pace.waitMs, pace.wakeable ? bell.signal : current.stopping);
    if (!pace.wakeable || !bell.signal.aborted) return pace;
    bell = new AbortController();
    return { ...pace, waitMs: 0 };
  };

  const reportFailure = (err: unknown): void => {
    if (hasCode(err, 'RS_MIGRATE_PENDING')) {
      // Nobody but a person ends this, who needs to hear what to do.
      logger.error({ relay: name, code: err.code, err }, `${err.message}; the relay backs off and tries again`);
    } else {
      logger.warn({ relay: name, err }, 'an iteration of the relay failed; it backs off and goes on');
    }
  };

  const loop = async (current: Run): Promise<void> => {
    logger.info({ relay: name, mode }, 'relay started');
    let pace = FIRST_PACE;
    while (!current.stopping.aborted) {
      let end: IterationEnd;
      try {
        ({ end } = await current.iterate(pace.probing));
      } catch (error) {
        end = 'errored';
        reportFailure(error);
        emit('outbox.errored', { relay: name, error });
      }
      pace = await rest(current, nextPace(pace, end, { ...parsed, ...parsed.backoff }));
    }
    logger.info({ relay: name }, 'relay stopped');
  };

  const stop = async (deadline?: AbortSignal): Promise<void> => {
    const current = run;
    if (!current) return;
    const abandon = (): void => {
      current.abandon();
    };
    const over = new AbortController();
    current.stop();
    if (deadline?.aborted) abandon();
    deadline?.addEventListener('abort', abandon, { once: true, signal: over.signal });
    const end = await Promise.race([
      current.ended().then(() => 'ended'),
      aborted(current.abandoned, over.signal)
        .then(() => pause(clock, LAST_STEPS_MS, over.signal))
        .then(() => 'abandoned'),
    ]);
    over.abort();
    if (end === 'abandoned')
      logger.warn({ relay: name }, 'the relay was abandoned at its deadline; its claims run out');
    current.close();
    if (run === current) run = undefined;
  };

  return {
    name,
    start() {
      if (signals?.stopping.aborted) return;
      const current = currentRun();
      if (loopOf === current) return;
      loopOf = current;
      void current.track(loop(current));
    },
    stop,
    async runOnce() {
      const current = currentRun();
      if (current.stopping.aborted) return { claimed: 0, published: 0 };
      const { result } = await current.track(current.iterate(false));
      return { claimed: result.claimed, published: result.published };
    },
    wake,
    [Symbol.asyncDispose]: () => stop(),
  };
}

function aborted(signal: AbortSignal, over: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true, signal: over },
    );
  });
}
