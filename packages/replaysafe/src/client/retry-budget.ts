const TOKENS_FOR_A_RETRY = 5;

/**
 * Bounds the retries of one client: an outage of the remote system must not be answered with three times its traffic. Each
 * retry costs what five calls that went well give back, so in the long run a sixth of what is sent is retries, after `capacity`
 * of them on credit.
 */
export class RetryBudget {
  readonly #most: number;
  #tokens: number;

  constructor(capacity: number) {
    this.#most = capacity * TOKENS_FOR_A_RETRY;
    this.#tokens = this.#most;
  }

  /** Whether one more retry may be made. */
  spend(): boolean {
    if (this.#tokens < TOKENS_FOR_A_RETRY) return false;
    this.#tokens -= TOKENS_FOR_A_RETRY;
    return true;
  }

  /** A call went well. */
  earn(): void {
    if (this.#tokens < this.#most) this.#tokens++;
  }
}
