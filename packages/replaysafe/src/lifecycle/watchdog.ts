import { Worker } from 'node:worker_threads';

export interface WatchdogOptions {
  /** From now on, in milliseconds. */
  readonly killAfterMs: number;
  /** Where the last report goes, beside standard error. */
  readonly reportFile: string | undefined;
  /** What is written if nothing else is known by then. */
  readonly report: string;
}

export interface Watchdog {
  /** The report to be written if the process is killed. */
  update(report: string): void;
  /** Ends the thread: the process is leaving by itself. */
  stop(): void;
}

/**
 * A thread that kills its process at a given time. A timer of the main thread does not fire while its event loop is
 * blocked, nor can `process.exit` be called then; from another thread only SIGKILL works, so the exit status is 137.
 *
 * The program is text, not a file: a bundler that knows nothing of worker threads would leave a file behind.
 */
const PROGRAM = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { writeFileSync, writeSync } = require('node:fs');
  let { report } = workerData;
  parentPort.on('message', (latest) => { report = latest; });
  const attempt = (write) => { try { write(); } catch { /* the kill is what matters */ } };
  setTimeout(() => {
    if (workerData.reportFile !== undefined) attempt(() => writeFileSync(workerData.reportFile, report));
    // Not process.stderr: in a worker that is written by the main thread, which is blocked.
    attempt(() => writeSync(2, '{"level":"error","message":"the event loop is blocked; the watchdog ends the process","report":' + report + '}\\n'));
    process.kill(process.pid, 'SIGKILL');
  }, workerData.killAfterMs);
`;

export function startWatchdog(options: WatchdogOptions): Watchdog {
  // Without the arguments of this process: a loader that it was started with would only cost time.
  const worker = new Worker(PROGRAM, { eval: true, execArgv: [], workerData: options });
  worker.unref();
  // A thread that cannot be had (memory, limits) leaves the stop as it was.
  worker.on('error', () => undefined);
  return {
    update: (report) => {
      worker.postMessage(report);
    },
    stop: () => {
      void worker.terminate();
    },
  };
}
