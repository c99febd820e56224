/**
 * What became of a request.
 *
 * - `answered`: completely, with what was asked for.
 * - `refused`: nobody listened any more, or it was answered 503 and told to go elsewhere.
 * - `crossed`: it met the server's FIN on its way; nothing of it was processed.
 * - `lost`: begun on an accepted connection before the server's FIN, and not fully answered.
 * - `reset`: the same, by an RST.
 */
export type Outcome = 'answered' | 'refused' | 'crossed' | 'lost' | 'reset';

export interface Count {
  readonly kind: string;
  readonly answered: number;
  readonly refused: number;
  readonly crossed: number;
  readonly lost: number;
  readonly reset: number;
}

const NOTHING = { answered: 0, refused: 0, crossed: 0, lost: 0, reset: 0 };

/** Counts outcomes by the kind of client, and remembers when a connection was used last. */
export class Tally {
  readonly #counts = new Map<string, Record<Outcome, number>>();
  #lastUseAt = 0;

  count(kind: string, outcome: Outcome): void {
    const counts = this.#counts.get(kind) ?? { ...NOTHING };
    counts[outcome]++;
    this.#counts.set(kind, counts);
    if (outcome !== 'refused' && outcome !== 'crossed') this.#lastUseAt = performance.now();
  }

  /** By `performance.now()`. */
  get lastUseAt(): number {
    return this.#lastUseAt;
  }

  counts(): readonly Count[] {
    return [...this.#counts].map(([kind, counts]) => ({ kind, ...counts }));
  }
}

export function total(counts: readonly Count[], outcome: Outcome): number {
  return counts.reduce((sum, count) => sum + count[outcome], 0);
}
