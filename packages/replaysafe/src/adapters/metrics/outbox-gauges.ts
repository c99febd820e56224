import { deadlineAfter, type Clock } from '../../ports/clock.js';

/** What a scrape asks of an outbox: `createOutbox(…).status()`. */
export interface OutboxSource {
  status(): Promise<{
    readonly pending: number;
    readonly publishing: number;
    readonly dead: number;
    readonly oldestOpenAgeMs: number;
  }>;
}

export interface OutboxReading {
  readonly events: Readonly<Record<'pending' | 'publishing' | 'dead', number>>;
  readonly oldestOpenAgeMs: number;
}

/** Not 0, which would say that all is well. */
const UNKNOWN: OutboxReading = {
  events: { pending: Number.NaN, publishing: Number.NaN, dead: Number.NaN },
  oldestOpenAgeMs: Number.NaN,
};

export interface OutboxPollOptions {
  readonly outbox: OutboxSource;
  readonly clock: Clock;
  /** How long a reading is used again, in milliseconds: several gauges, and several scrapers, share it. */
  readonly cacheMs: number;
  /** How long the outbox may take to answer, in milliseconds. */
  readonly timeoutMs: number;
}

/** Asks the outbox when a scrape wants to know; never rejects, since that would fail the whole scrape. */
export function pollOutbox(options: OutboxPollOptions): () => Promise<OutboxReading> {
  const { outbox, clock, cacheMs, timeoutMs } = options;
  let latest: { readonly atMs: number; readonly reading: Promise<OutboxReading> } | undefined;

  const ask = async (): Promise<OutboxReading> => {
    const limit = deadlineAfter(clock, timeoutMs);
    const late = new Promise<OutboxReading>((resolve) => {
      limit.signal.addEventListener('abort', () => {
        resolve(UNKNOWN);
      });
    });
    try {
      return await Promise.race([readStatus(outbox), late]);
    } finally {
      limit.dispose();
    }
  };

  return () => {
    const atMs = clock.monotonicMs();
    if (!latest || atMs - latest.atMs >= cacheMs) latest = { atMs, reading: ask() };
    return latest.reading;
  };
}

async function readStatus(outbox: OutboxSource): Promise<OutboxReading> {
  try {
    const { pending, publishing, dead, oldestOpenAgeMs } = await outbox.status();
    return { events: { pending, publishing, dead }, oldestOpenAgeMs };
  } catch {
    // Whoever uses the database reports that it is away; here it only means that nothing is known.
    return UNKNOWN;
  }
}
