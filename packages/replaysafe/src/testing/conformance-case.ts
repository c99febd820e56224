/** One test of a published suite, for any runner: `test(name, () => run(harness))`. It fails by throwing. */
export interface ConformanceCase<Harness> {
  readonly name: string;
  readonly run: (harness: Harness) => Promise<void>;
}
