import { constants } from 'node:os';
import { onParentGone } from '../service/parent.js';

/** Exit status when PostgreSQL, Kafka or a service could not be started. */
export const START_FAILED = 2;

/**
 * Runs a program that starts others, so that it always ends them: when it is done, when it fails, at a signal, and when the
 * process that started it is gone. A second signal ends it at once; services notice and end themselves.
 *
 * @param body gives the exit status. Its signal aborts when the program is to end, with the status that stands for why.
 */
export function runProgram(body: (ending: AbortSignal) => Promise<number>): void {
  const controller = new AbortController();
  const end = (status: number): void => {
    if (controller.signal.aborted) process.exit(status);
    controller.abort(status);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      end(128 + constants.signals[signal]);
    });
  }
  // Output to a reader that is gone is no reason to leave services behind.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const parent = onParentGone(() => {
    end(1);
  });
  void body(controller.signal)
    .catch((error: unknown) => {
      console.error(error instanceof Error ? error.message : String(error));
      return START_FAILED;
    })
    .then((status) => {
      parent.cancel();
      process.exit(status);
    });
}

export function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    const done = (): void => {
      resolve(undefined);
    };
    if (signal.aborted) done();
    signal.addEventListener('abort', done, { once: true });
  });
}
