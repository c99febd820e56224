/** One measured case: the median of its runs. */
export interface Measured {
  readonly case: string;
  /** `replaysafe`, or `bare`: the same steps written by hand without the library. */
  readonly contender: string;
  readonly value: number;
  readonly unit: string;
  readonly runs: number;
}

export interface Contender {
  readonly name: string;
  /** One run; resolves to its figure. */
  run(): Promise<number>;
}

/** Runs the contenders in turn, A B A B, so that a machine that slows down slows both; the first round is a warm-up. */
export async function measure(
  name: string,
  unit: string,
  runs: number,
  contenders: readonly Contender[],
): Promise<Measured[]> {
  const figures = new Map(contenders.map((contender) => [contender.name, [] as number[]]));
  for (let round = 0; round <= runs; round++) {
    for (const contender of contenders) {
      const figure = await contender.run();
      if (round > 0) figures.get(contender.name)!.push(figure);
    }
  }
  return [...figures].map(([contender, values]) => ({ case: name, contender, value: median(values), unit, runs }));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Things done in a second. */
export async function perSecond(count: number, work: () => Promise<void>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (count * 1_000) / (performance.now() - startedAt);
}
