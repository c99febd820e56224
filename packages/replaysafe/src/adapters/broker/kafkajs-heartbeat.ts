import type { Clock, Timer } from '../../ports/clock.js';

export interface HeartbeatSettings {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly sessionTimeoutMs: number;
  readonly onError: (error: unknown) => void;
  /** Nothing was answered for a whole session: the group has moved on without us, as far as anybody here can know. */
  readonly onSilence: () => void;
}

/** kafkajs sends heartbeats between batches only; while one is handled they are sent from here, and never throw into a handler. */
export class Heartbeats {
  readonly #settings: HeartbeatSettings;
  #answeredAt: number | undefined;
  #holders = 0;
  #timer: Timer | undefined;
  #beating = false;

  constructor(settings: HeartbeatSettings) {
    this.#settings = settings;
  }

  get sinceAnswerMs(): number | undefined {
    return this.#answeredAt === undefined ? undefined : this.#settings.clock.monotonicMs() - this.#answeredAt;
  }

  get silent(): boolean {
    return (this.sinceAnswerMs ?? 0) > this.#settings.sessionTimeoutMs;
  }

  answered(): void {
    this.#answeredAt = this.#settings.clock.monotonicMs();
  }

  async during(beat: () => Promise<void>, work: () => Promise<void>): Promise<void> {
    this.#holders++;
    if (this.silent) await this.#beat(beat);
    this.#schedule(beat);
    try {
      await work();
    } finally {
      this.#holders--;
      if (this.#holders === 0) {
        this.#timer?.cancel();
        this.#timer = undefined;
      }
    }
  }

  #schedule(beat: () => Promise<void>): void {
    const { clock, heartbeatMs } = this.#settings;
    // kafkajs sends one only when the interval has passed since the last, so that it must be asked more often than that.
    this.#timer ??= clock.setTimer(heartbeatMs / 3, () => {
      this.#timer = undefined;
      if (this.#holders === 0) return;
      if (this.silent) this.#settings.onSilence();
      void this.#beat(beat);
      this.#schedule(beat);
    });
  }

  async #beat(beat: () => Promise<void>): Promise<void> {
    if (this.#beating) return;
    this.#beating = true;
    try {
      await beat();
    } catch (error) {
      this.#settings.onError(error);
    } finally {
      this.#beating = false;
    }
  }
}
