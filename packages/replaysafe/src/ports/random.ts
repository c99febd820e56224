/** Randomness for jitter. Ids come from the database or from `node:crypto`, never from here. */
export interface Random {
  /** At least 0, less than 1. */
  next(): number;
}

export const systemRandom: Random = { next: () => Math.random() };
