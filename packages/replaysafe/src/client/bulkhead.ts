export interface BulkheadOptions {
  /** Most that run at once. */
  readonly concurrent: number;
  /** Most that wait. */
  readonly queue: number;
}

/**
 * The bulkhead of one remote system: slots, and a bounded queue in order of arrival. A slot is given back by whoever holds it
 * when its work has ended; nothing here knows of time.
 */
export class Bulkhead<Waiter> {
  readonly #options: BulkheadOptions;
  readonly #waiting = new Set<Waiter>();
  #running = 0;

  constructor(options: BulkheadOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** `run`: a slot is held now. `wait`: {@link leave} will hand one over. */
  enter(waiter: Waiter): 'run' | 'wait' | 'full' {
    if (this.#running < this.#options.concurrent) {
      this.#running++;
      return 'run';
    }
    if (this.#waiting.size >= this.#options.queue) return 'full';
    this.#waiting.add(waiter);
    return 'wait';
  }

  /** Gives a slot back. Whoever has waited longest holds it from now on, and is returned. */
  leave(): Waiter | undefined {
    for (const waiter of this.#waiting) {
      this.#waiting.delete(waiter);
      return waiter;
    }
    this.#running--;
    return undefined;
  }

  /** Waits no longer. */
  withdraw(waiter: Waiter): void {
    this.#waiting.delete(waiter);
  }
}
