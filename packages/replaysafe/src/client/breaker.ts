export type BreakerState = 'closed' | 'open' | 'half-open';

export interface BreakerOptions {
  /** How many of the last tries are judged. */
  readonly window: number;
  /** Opens when so many of a hundred of them failed. */
  readonly failurePercent: number;
  /** Fewer tries than this are not judged. */
  readonly minimumTries: number;
  /** From opening to the first probe, in milliseconds of the monotonic clock. */
  readonly openMs: number;
  /** Tries let through while half-open; as many must succeed, one after another or at once, to close. */
  readonly probes: number;
}

/** What a try says about the remote system. `ignored`: nothing, e.g. because the caller gave it up. */
export type Verdict = 'well' | 'failed' | 'ignored';

/** What `admit` answers in place of a permit. */
export const REFUSED = -1;

const WELL = 1;
const FAILED = 2;

/**
 * The circuit breaker of one remote system: a state machine without timers. A permit is the number of the period it was given
 * in; a verdict of an earlier period says nothing about this one and is dropped.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #now: () => number;
  readonly #changed: (from: BreakerState, to: BreakerState) => void;
  readonly #window: Uint8Array;
  #state: BreakerState = 'closed';
  #period = 0;
  #next = 0;
  #judged = 0;
  #failed = 0;
  #openedAt = 0;
  #probing = 0;
  #probedWell = 0;

  constructor(
    options: BreakerOptions,
    now: () => number,
    changed: (from: BreakerState, to: BreakerState) => void = () => undefined,
  ) {
    this.#options = options;
    this.#now = now;
    this.#changed = changed;
    this.#window = new Uint8Array(options.window);
  }

  get state(): BreakerState {
    return this.#state;
  }

  /** A permit for one try, or {@link REFUSED}. `probe`: whether the try may be one of those that test an ill system. */
  admit(probe: boolean): number {
    if (this.#state === 'closed') return this.#period;
    if (!probe) return REFUSED;
    if (this.#state === 'open') {
      if (this.#now() - this.#openedAt < this.#options.openMs) return REFUSED;
      this.#enter('half-open');
    }
    if (this.#probing + this.#probedWell >= this.#options.probes) return REFUSED;
    this.#probing++;
    return this.#period;
  }

  /** Whether a permit that was not used yet is still good. */
  honours(permit: number): boolean {
    return permit === this.#period;
  }

  /** Each permit comes back once. */
  settle(permit: number, verdict: Verdict): void {
    if (permit !== this.#period) return;
    if (this.#state === 'half-open') this.#settleProbe(verdict);
    else if (this.#state === 'closed' && verdict !== 'ignored') this.#judge(verdict === 'failed' ? FAILED : WELL);
  }

  #settleProbe(verdict: Verdict): void {
    this.#probing--;
    if (verdict === 'failed') this.#enter('open');
    else if (verdict === 'well' && ++this.#probedWell >= this.#options.probes) this.#enter('closed');
  }

  #judge(verdict: number): void {
    const { window, minimumTries, failurePercent } = this.#options;
    if (this.#judged === window) {
      if (this.#window[this.#next] === FAILED) this.#failed--;
    } else {
      this.#judged++;
    }
    this.#window[this.#next] = verdict;
    this.#next = (this.#next + 1) % window;
    if (verdict !== FAILED) return;
    this.#failed++;
    if (this.#judged >= minimumTries && this.#failed * 100 >= this.#judged * failurePercent) this.#enter('open');
  }

  #enter(state: BreakerState): void {
    const from = this.#state;
    this.#state = state;
    this.#period++;
    this.#next = 0;
    this.#judged = 0;
    this.#failed = 0;
    this.#probing = 0;
    this.#probedWell = 0;
    if (state === 'open') this.#openedAt = this.#now();
    this.#changed(from, state);
  }
}
