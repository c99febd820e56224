import { constants } from 'node:os';
import { pause, type Timer } from '../ports/clock.js';
import { crashExitCode, type ShutdownReport } from './report.js';
import { type Lifecycle } from './lifecycle.js';

export interface SignalOptions {
  /** Writes out what the logger still holds, e.g. `() => new Promise((done) => pino.flush(() => done()))`. Given 1 s. */
  readonly flushLogs?: () => Promise<void> | void;
}

export interface InstalledSignals {
  /** Takes the handlers away again; a stop under way goes on, but does not end the process. */
  uninstall(): void;
}

type StopSignal = 'SIGTERM' | 'SIGINT';

const FLUSH_MS = 1_000;

/**
 * Ties the lifecycle to the process: SIGTERM and SIGINT begin the stop, and the process ends with the report's exit code
 * when it is complete. A second signal ends it at once with 128 + n. An uncaught exception or unhandled rejection stops
 * it with the short crash budget and exit code 1; a second one ends it at once. Call it before anything is opened, so
 * that a signal during start-up closes what is open by then.
 *
 * Nothing else in the library ends the process (R-SHUT-HTTP-X1).
 */
export function installSignals(lifecycle: Lifecycle, options: SignalOptions = {}): InstalledSignals {
  const { logger, clock } = lifecycle;
  let signalled = false;
  let crashes = 0;
  let leaving = false;
  let installed = true;
  const forcedExits: Timer[] = [];

  const exit = (code: number): void => {
    process.exit(code);
  };

  const leave = async (code: number): Promise<void> => {
    if (leaving || !installed) return;
    leaving = true;
    await Promise.race([flush(options), pause(clock, FLUSH_MS)]);
    exit(code);
  };

  const stopThenExit = (reason: string, crash: boolean): void => {
    const forcedExitMs = lifecycle.budget.forcedExitMs;
    const timer = clock.setTimer(forcedExitMs, () => {
      logger.error({ reason, forcedExitMs }, 'the stop did not end in time; leaving');
      exit(124);
    });
    forcedExits.push(timer);
    void lifecycle
      .stop(reason, { crash })
      .then((report: ShutdownReport) => leave(crashes > 0 ? crashExitCode : report.exitCode));
  };

  const forgetPrestop = lifecycle.onPrestop(() => {
    // Not a signal: the one that follows is the first. Where none follows, the process must not stay behind, closed.
    stopThenExit('prestop', false);
  });

  const onSignal = (signal: StopSignal): void => {
    const fields = { signal, pid: process.pid, uptimeMs: Math.round(process.uptime() * 1_000) };
    if (signalled) {
      logger.warn(fields, 'second signal received; leaving at once');
      exit(128 + constants.signals[signal]);
      return;
    }
    signalled = true;
    logger.info(fields, 'signal received');
    stopThenExit(signal, false);
  };

  const onCrash =
    (origin: 'uncaughtException' | 'unhandledRejection') =>
    (error: unknown): void => {
      crashes++;
      logger.error({ err: error, origin, pid: process.pid }, 'uncaught error');
      if (crashes > 1) exit(crashExitCode);
      else stopThenExit(origin, true);
    };

  const handlers = {
    SIGTERM: () => {
      onSignal('SIGTERM');
    },
    SIGINT: () => {
      onSignal('SIGINT');
    },
    uncaughtException: onCrash('uncaughtException'),
    unhandledRejection: onCrash('unhandledRejection'),
  };
  for (const [event, handler] of Object.entries(handlers)) process.on(event, handler);

  return {
    uninstall: () => {
      installed = false;
      forgetPrestop();
      for (const timer of forcedExits) timer.cancel();
      for (const [event, handler] of Object.entries(handlers)) process.removeListener(event, handler);
    },
  };
}

/** What was logged must be out before the process is gone: pipes may be written asynchronously. */
async function flush(options: SignalOptions): Promise<void> {
  try {
    await options.flushLogs?.();
  } catch {
    // The logger is what failed: there is nothing to tell it with.
  }
  await Promise.all([process.stdout, process.stderr].map(written));
}

function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (!stream.writable) resolve();
    else
      stream.write('', () => {
        resolve();
      });
  });
}
