import type { Random } from 'replaysafe';

/** A generator that gives the same numbers for the same seed (mulberry32: 32 bits of state are plenty for a schedule). */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  between(low: number, high: number): number {
    return Math.floor(low + this.next() * (high - low + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  /** Picks by weight; a weight of 0 is never picked. */
  weighted<Choice extends string>(weights: Readonly<Record<Choice, number>>): Choice {
    const entries = Object.entries<number>(weights) as [Choice, number][];
    let left = this.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [choice, weight] of entries) {
      left -= weight;
      if (left < 0 && weight > 0) return choice;
    }
    throw new Error('no weight is above 0');
  }

  /** A generator of its own for each purpose: one that is asked more often does not move the others. */
  fork(purpose: number): SeededRandom {
    return new SeededRandom(Math.imul(this.#state ^ purpose, 0x9e3779b1));
  }
}
