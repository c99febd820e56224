/**
 * Tells commits that were asked for from those that kafkajs writes by itself, when the broker calls an offset out of range. Its events
 * show each answered commit and not who wanted it, so they are counted: one answer for each of ours.
 */
export class CommitWatch {
  readonly #onForeign: () => void;
  #expected = 0;

  constructor(onForeign: () => void) {
    this.#onForeign = onForeign;
  }

  async own(write: () => Promise<void>): Promise<void> {
    this.#expected++;
    try {
      await write();
    } catch (error) {
      // Refused commits are answered too; one that never was leaves a count that could hide a foreign one.
      this.#expected = Math.max(0, this.#expected - 1);
      throw error;
    }
  }

  answered(): void {
    if (this.#expected > 0) this.#expected--;
    else this.#onForeign();
  }
}
