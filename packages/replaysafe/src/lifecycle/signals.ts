import { readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { onEvent } from '../events.js';
import { boolean, callback, optional, parseOptions, port, text } from '../options.js';
import { pause, type Timer } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { reportText, type ReportLike } from './report-text.js';
import { parentOf, wrapperWarning } from './wrapper.js';
import { crashExitCode, type ShutdownReport } from './report.js';
import { startWatchdog, type Watchdog } from './watchdog.js';
import { type Lifecycle } from './lifecycle.js';

export interface SignalOptions {
  /** Writes out what the logger still holds, e.g. `() => new Promise((done) => pino.flush(() => done()))`. Given 1 s. */
  readonly flushLogs?: () => Promise<void> | void;
  /**
   * Where the report of the stop is written as JSON, cut to 4,096 bytes: `/dev/termination-log` is what Kubernetes shows as
   * the container's last message. Default: nowhere; it is logged in any case.
   */
  readonly reportFile?: string;
  /**
   * A thread that kills the process shortly before the orchestrator would, should its event loop be blocked in the stop,
   * and writes the report first. Default true.
   */
  readonly watchdog?: boolean;
}

const LIFECYCLE = port<Lifecycle>(['stop', 'signalsFor', 'onPrestop']);
const SIGNAL_OPTIONS = {
  flushLogs: optional(callback<() => Promise<void> | void>()),
  reportFile: optional(text()),
  watchdog: boolean(true),
} as const;

export interface InstalledSignals {
  /** Takes the handlers away again; a stop under way goes on, but does not end the process. */
  uninstall(): void;
}

type StopSignal = 'SIGTERM' | 'SIGINT';

const FLUSH_MS = 1_000;
/** At the forced exit, which the watchdog is close behind. */
const LAST_FLUSH_MS = 100;
const OVERRUN = 124;
/** The exit status of a process that SIGKILL ended, as a shell and Kubernetes report it. */
const KILLED = 137;

/**
 * Ties the lifecycle to the process: SIGTERM and SIGINT begin the stop, and the process ends with the report's exit code
 * when it is complete. A second signal ends it at once with 128 + n. An uncaught exception or unhandled rejection stops
 * it with the short crash budget and exit code 1; a second one ends it at once. Call it before anything is opened, so
 * that a signal during start-up closes what is open by then.
 *
 * Nothing else in the library ends the process (R-SHUT-HTTP-X1).
 */
export function installSignals(lifecycle: Lifecycle, signalOptions?: SignalOptions): InstalledSignals {
  parseOptions('installSignals', { lifecycle: LIFECYCLE }, { lifecycle });
  const options = parseOptions('installSignals', SIGNAL_OPTIONS, signalOptions);
  const { logger, clock } = lifecycle;
  let signalled = false;
  let crashes = 0;
  let leaving = false;
  let installed = true;
  const forcedExits: Timer[] = [];
  let watchdog: Watchdog | undefined;

  const exit = (code: number): void => {
    process.exit(code);
  };

  const leave = async (code: number, flushMs = FLUSH_MS): Promise<void> => {
    if (leaving || !installed) return;
    leaving = true;
    await Promise.race([flush(options), pause(clock, flushMs)]);
    exit(code);
  };

  const reportProgress = (): void => {
    const progress = lifecycle.progress;
    if (progress) watchdog?.update(reportText({ ...progress, exitCode: KILLED }));
  };
  const subscriptions = [
    onEvent('lifecycle.phase-started', reportProgress),
    onEvent('lifecycle.phase-ended', reportProgress),
    onEvent('lifecycle.resource-stopped', reportProgress),
  ];

  /** Not for a stop by the application itself, which may go on without its lifecycle. */
  const watch = (reason: string, forcedExitMs: number): void => {
    if (!options.watchdog) return;
    const { name, budget } = lifecycle;
    const nothing = { name, reason, elapsedMs: 0, phases: [], steps: [], waitingFor: [] };
    watchdog ??= startWatchdog({
      killAfterMs: forcedExitMs + (budget.watchdogMs - budget.forcedExitMs),
      reportFile: options.reportFile,
      report: reportText({ ...(lifecycle.progress ?? nothing), exitCode: KILLED }),
    });
  };

  const writeReport = (report: ReportLike): void => {
    if (options.reportFile === undefined) return;
    try {
      writeFileSync(options.reportFile, reportText(report));
    } catch (error) {
      logger.warn({ err: error, reportFile: options.reportFile }, 'the report could not be written');
    }
  };

  const stopThenExit = (reason: string, crash: boolean): void => {
    // After a crash the rest is short, also of a stop that was under way.
    const forcedExitMs = crash ? lifecycle.budget.crashExitMs : lifecycle.budget.forcedExitMs;
    const timer = clock.setTimer(forcedExitMs, () => {
      const waitingFor = lifecycle.progress?.waitingFor;
      logger.error({ reason, forcedExitMs, waitingFor }, 'the stop did not end in time; leaving');
      const exitCode = crashes > 0 ? crashExitCode : OVERRUN;
      if (lifecycle.progress) writeReport({ ...lifecycle.progress, exitCode });
      void leave(exitCode, LAST_FLUSH_MS);
    });
    forcedExits.push(timer);
    watch(reason, forcedExitMs);
    void lifecycle.stop(reason, { crash }).then((report: ShutdownReport) => {
      const exitCode = crashes > 0 ? crashExitCode : report.exitCode;
      writeReport({ ...report, exitCode });
      return leave(exitCode);
    });
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
  warnOfWrapper(logger);

  return {
    uninstall: () => {
      installed = false;
      forgetPrestop();
      watchdog?.stop();
      for (const subscription of subscriptions) subscription.unsubscribe();
      for (const timer of forcedExits) timer.cancel();
      for (const [event, handler] of Object.entries(handlers)) process.removeListener(event, handler);
    },
  };
}

/** In a container whose first process is a wrapper of ours, signals may never arrive. Only Linux tells. */
function warnOfWrapper(logger: Logger): void {
  if (process.platform !== 'linux') return;
  try {
    const warning = stemsFromFirst(process.ppid) ? wrapperWarning(nameOf(1)) : undefined;
    if (warning !== undefined) logger.warn({ pid: process.pid, ppid: process.ppid }, warning);
  } catch {
    // No /proc, or not ours to read: nothing is known.
  }
}

/** Whether the first process is the parent, or what the parent was started by: a package runner starts a shell. */
function stemsFromFirst(parent: number): boolean {
  if (parent === 1) return true;
  return parent > 1 && parentOf(readFileSync(`/proc/${parent}/stat`, 'utf8')) === 1;
}

const nameOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim();

/** What was logged must be out before the process is gone: pipes may be written asynchronously. */
async function flush(options: { readonly flushLogs: SignalOptions['flushLogs'] | undefined }): Promise<void> {
  try {
    await options.flushLogs?.();
  } catch {
    // The logger is what failed: there is nothing to tell it with.
  }
  await Promise.all([process.stdout, process.stderr].map(written));
}

function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    // Whoever read our output may be gone (EPIPE): that must not become the reason of the exit.
    stream.on('error', () => {
      resolve();
    });
    if (!stream.writable) resolve();
    else
      stream.write('', () => {
        resolve();
      });
  });
}
