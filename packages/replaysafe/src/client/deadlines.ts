import type { Clock, Timer } from '../ports/clock.js';

/** Something that ends at a moment, unless it is removed before. */
export interface Ending {
  /** By the monotonic clock. Fixed while {@link Deadlines} keeps it. */
  readonly at: number;
  /** Where {@link Deadlines} keeps it; -1 while it does not. */
  slot: number;
  expire(): void;
}

/**
 * The deadlines of all calls of a client, on one timer: a timer for each call would cost more than the rest of it. A binary heap by
 * moment; calls have mostly the same length, so that a new one stays at the end where it is put.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #heap: Ending[] = [];
  #timer: Timer | undefined;
  #wakesAt = Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(ending: Ending): void {
    this.#place(ending, this.#heap.length);
    this.#up(ending);
    // Removing does not touch the timer: it fires once for nothing in the time of a whole call.
    if (ending.at < this.#wakesAt) this.#wakeAt(ending.at);
  }

  remove(ending: Ending): void {
    const { slot } = ending;
    if (slot === -1) return;
    ending.slot = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === ending) return;
    this.#place(last, slot);
    this.#up(last);
    this.#down(last);
  }

  /** Those that have not ended, in no order. */
  pending(): readonly Ending[] {
    return [...this.#heap];
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakesAt = Infinity;
  }

  #wakeAt(at: number): void {
    this.#timer?.cancel();
    this.#wakesAt = at;
    // An open socket or the wait before a try keeps the process alive; this timer alone has no reason to.
    this.#timer = this.#clock.setTimer(at - this.#clock.monotonicMs(), this.#wake, { keepAlive: false });
  }

  readonly #wake = (): void => {
    this.#timer = undefined;
    this.#wakesAt = Infinity;
    const now = this.#clock.monotonicMs();
    for (let first = this.#heap[0]; first !== undefined && first.at <= now; first = this.#heap[0]) {
      this.remove(first);
      first.expire();
    }
    const next = this.#heap[0];
    if (next !== undefined && next.at < this.#wakesAt) this.#wakeAt(next.at);
  };

  #up(ending: Ending): void {
    while (ending.slot > 0) {
      const parent = this.#heap[(ending.slot - 1) >> 1];
      if (parent === undefined || parent.at <= ending.at) return;
      this.#swap(parent, ending);
    }
  }

  #down(ending: Ending): void {
    for (;;) {
      const left = this.#heap[2 * ending.slot + 1];
      const right = this.#heap[2 * ending.slot + 2];
      const child = right !== undefined && left !== undefined && right.at < left.at ? right : left;
      if (child === undefined || child.at >= ending.at) return;
      this.#swap(ending, child);
    }
  }

  #swap(upper: Ending, lower: Ending): void {
    const { slot } = upper;
    this.#place(upper, lower.slot);
    this.#place(lower, slot);
  }

  #place(ending: Ending, slot: number): void {
    this.#heap[slot] = ending;
    ending.slot = slot;
  }
}
