import { boundedTransaction } from '../ports/bounded-transaction.js';
import { pause } from '../ports/clock.js';
import { type BatchContext } from './batch.js';
import { uuidArray } from './claim.js';

export interface Lease {
  /** Monotonic moment until which the rows are ours as far as this process knows. */
  readonly until: () => number;
  /** Ends the renewing, and waits for one that is under way. */
  stop(): Promise<void>;
}

/** Renewals a lease has room for: two may fail before it runs out. */
const RENEWALS_PER_LEASE = 3;

/** Renews the lease of a claim while its batch is under way, so that a slow broker does not hand it to another relay. */
export function keepLease(context: BatchContext, claimToken: string, ids: readonly string[]): Lease {
  const { clock, leaseMs, statements, relay, logger } = context;
  const everyMs = Math.max(1, Math.floor(leaseMs / RENEWALS_PER_LEASE));
  const ended = new AbortController();
  let until = clock.monotonicMs() + leaseMs;

  const renew = async (): Promise<void> => {
    const askedAt = clock.monotonicMs();
    try {
      const renewed = await boundedTransaction(context, everyMs, (tx) =>
        tx.query(statements.renew, [uuidArray(ids), claimToken, leaseMs]),
      );
      if (renewed.rowCount > 0) until = askedAt + leaseMs;
    } catch (error) {
      logger.warn({ relay, err: error }, 'a lease could not be renewed; it is tried again');
    }
  };
  const loop = async (): Promise<void> => {
    for (;;) {
      await pause(clock, everyMs, ended.signal);
      if (ended.signal.aborted) return;
      await renew();
    }
  };
  const running = loop();
  return {
    until: () => until,
    stop: async () => {
      ended.abort();
      await running;
    },
  };
}
