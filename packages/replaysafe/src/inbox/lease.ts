import { setMaxListeners } from 'node:events';
import type { ReceivedBatch } from '../ports/broker.js';

/** What may end the work on a batch. */
export interface Lease {
  /** Abort at once and commit nothing: the partition is lost, or the stop's deadline is reached. */
  readonly cut: AbortSignal;
  /** End at the next safe place: the partition is about to be given up, or the consumer stops. */
  readonly ending: AbortSignal;
  /** The stop's deadline alone. */
  readonly deadline: AbortSignal;
  /** Either of the first two. */
  readonly interrupted: AbortSignal;
  dispose(): void;
}

export interface JoinedSignal {
  readonly signal: AbortSignal;
  dispose(): void;
}

/**
 * A signal that aborts with the first of several. Unlike `AbortSignal.any` it leaves nothing behind on a source that lives as
 * long as the process.
 */
export function joinSignals(...sources: readonly AbortSignal[]): JoinedSignal {
  const controller = new AbortController();
  // As many listen as there are events under way: no leak, and no reason to warn of one.
  setMaxListeners(0, controller.signal);
  const abort = (event: Event): void => {
    controller.abort((event.target as AbortSignal).reason);
  };
  for (const source of sources) {
    if (source.aborted) controller.abort(source.reason);
    else source.addEventListener('abort', abort, { once: true });
  }
  return {
    signal: controller.signal,
    dispose: () => {
      for (const source of sources) source.removeEventListener('abort', abort);
    },
  };
}

export function leaseOf(
  batch: Pick<ReceivedBatch, 'lost' | 'revoking'>,
  consumer: { readonly stopping: AbortSignal; readonly deadline: AbortSignal },
): Lease {
  const cut = joinSignals(batch.lost, consumer.deadline);
  const ending = joinSignals(batch.revoking, consumer.stopping);
  const interrupted = joinSignals(cut.signal, ending.signal);
  return {
    cut: cut.signal,
    ending: ending.signal,
    deadline: consumer.deadline,
    interrupted: interrupted.signal,
    dispose: () => {
      interrupted.dispose();
      cut.dispose();
      ending.dispose();
    },
  };
}

/**
 * What the promise becomes, or a rejection with the signal's reason as soon as it aborts, for a promise that may never settle.
 * Its late rejection is nobody's.
 */
export function orAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', abort);
    });
  });
}
