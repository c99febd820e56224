import { pause, type Clock } from '../ports/clock.js';
import type { Random } from '../ports/random.js';
import type { StopSignals } from '../ports/stop.js';

/** More duplicates of one key than this are told at once to come again. */
const MOST_WAITERS = 4;
const FIRST_POLL_MS = 20;
const LONGEST_POLL_MS = 200;

export interface WaiterSettings {
  readonly waitMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly signals: StopSignals | undefined;
}

const isStopping = (signals: StopSignals | undefined): boolean => signals?.stopping.aborted === true;

/** The duplicates of this process that wait for the first request of their key. They hold no connection. */
export class Waiters {
  readonly #settings: WaiterSettings;
  readonly #counts = new Map<string, number>();

  constructor(settings: WaiterSettings) {
    this.#settings = settings;
  }

  get stopping(): boolean {
    return isStopping(this.#settings.signals);
  }

  /** @returns nothing when enough wait for this key already */
  enter(keyHash: string): Waiter | undefined {
    const count = this.#counts.get(keyHash) ?? 0;
    if (count >= MOST_WAITERS) return undefined;
    this.#counts.set(keyHash, count + 1);
    return new Waiter(this.#settings, () => {
      const left = (this.#counts.get(keyHash) ?? 1) - 1;
      if (left > 0) this.#counts.set(keyHash, left);
      else this.#counts.delete(keyHash);
    });
  }
}

export class Waiter {
  readonly #settings: WaiterSettings;
  readonly #since: number;
  readonly #onLeave: () => void;
  #polls = 0;

  constructor(settings: WaiterSettings, onLeave: () => void) {
    this.#settings = settings;
    this.#since = settings.clock.monotonicMs();
    this.#onLeave = onLeave;
  }

  get waitedMs(): number {
    return this.#settings.clock.monotonicMs() - this.#since;
  }

  /** Waits for the time of the next look. @returns false when the wait is used up, or when the process is stopping */
  async pause(): Promise<boolean> {
    const { waitMs, clock, random, signals } = this.#settings;
    const left = waitMs - this.waitedMs;
    if (left <= 0 || isStopping(signals)) return false;
    const poll = Math.min(LONGEST_POLL_MS, FIRST_POLL_MS * 2 ** this.#polls++) * (0.5 + random.next() / 2);
    await pause(clock, Math.min(poll, left), signals?.stopping);
    return !isStopping(signals);
  }

  leave(): void {
    this.#onLeave();
  }
}
