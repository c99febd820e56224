export type Until<T> = { readonly aborted: false; readonly value: T } | { readonly aborted: true };

/**
 * What `work` resolves to, or `aborted` as soon as the signal aborts: no Kafka client lets a call be cancelled. Work that was left
 * behind goes on, and its failure is nobody's any more.
 */
export function until<T>(work: Promise<T>, signal: AbortSignal): Promise<Until<T>> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      resolve({ aborted: true });
    };
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work
      .then((value) => {
        resolve({ aborted: false, value });
      }, reject)
      .finally(() => {
        signal.removeEventListener('abort', leave);
      });
  });
}
