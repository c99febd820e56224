import type { Subscriber } from 'replaysafe';

/**
 * Commits the offset of a batch before its effect, as a consumer with auto-commit may do. Killed in the middle, the rest of the
 * batch is never delivered again. Used only when the demo switches the guard `offset-first` off.
 */
export function offsetFirst(subscriber: Subscriber): Subscriber {
  return {
    start: (options) =>
      subscriber.start({
        ...options,
        onBatch: async (batch) => {
          const last = batch.records.at(-1);
          if (last !== undefined) await batch.commit(last.offset + 1n);
          await options.onBatch(batch);
        },
      }),
    stop: (deadline) => subscriber.stop(deadline),
    health: () => subscriber.health(),
  };
}
