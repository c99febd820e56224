interface GivesUp {
  onCallerAbort(): void;
}

interface Listened {
  readonly calls: Set<GivesUp>;
  readonly abort: () => void;
}

/**
 * One listener for each signal, however many calls share it: a consumer hands one to all calls of a batch, and Node warns of a leak
 * at the eleventh listener. (`AbortSignal.any` of a signal and a time-out, on the other hand, may be collected on Node 20 before it
 * aborts.)
 */
export class CallerSignals {
  readonly #listened = new Map<AbortSignal, Listened>();

  listen(signal: AbortSignal, call: GivesUp): void {
    let listened = this.#listened.get(signal);
    if (listened === undefined) {
      const calls = new Set<GivesUp>();
      const abort = (): void => {
        for (const one of [...calls]) one.onCallerAbort();
      };
      listened = { calls, abort };
      this.#listened.set(signal, listened);
      signal.addEventListener('abort', abort, { once: true });
    }
    listened.calls.add(call);
  }

  forget(signal: AbortSignal, call: GivesUp): void {
    const listened = this.#listened.get(signal);
    if (listened === undefined) return;
    listened.calls.delete(call);
    if (listened.calls.size > 0) return;
    this.#listened.delete(signal);
    signal.removeEventListener('abort', listened.abort);
  }
}
