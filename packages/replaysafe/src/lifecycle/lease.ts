import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type SqlTransaction } from '../ports/sql.js';
import { type LeaseStore } from './lease-store.js';

/** What a run holds while it is the only one over all pods. */
export interface HeldLease<Tx = unknown> {
  /** Larger than that of every run before: may go into the rows a run writes, and be compared there. */
  readonly epoch: bigint;
  /** Aborts when the lease is another's, or could not be renewed until it ran out: stop, nothing more will be accepted. */
  readonly lost: AbortSignal;
  /**
   * The fence. Call it in each transaction of the run, as a statement before its writes: from then until the transaction has
   * ended no other pod can take the lease over (not inside a savepoint: what rolls back to it gives the lock up). Give it the handle of the transaction or what `sql.transaction` hands out.
   * @throws RS_LIFECYCLE_LEASE_LOST when another pod has taken over: let it roll the transaction back
   */
  check(tx: Tx | SqlTransaction<Tx>): Promise<void>;
}

export interface LeaseKeeperOptions<Tx> {
  readonly store: LeaseStore<Tx>;
  readonly worker: string;
  readonly epoch: bigint;
  readonly leaseMs: number;
  /** Monotonic moment before the claim was asked for. */
  readonly claimedAtMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** When it aborts, the run is given up on and its lease given back. */
  readonly deadline: AbortSignal;
}

export interface LeaseKeeper<Tx> {
  readonly lease: HeldLease<Tx>;
  /** Ends the renewing, and waits for one that is under way. */
  end(): Promise<void>;
  /** Whether `lost` has not aborted and the lease has not run out as far as this process knows. */
  readonly live: () => boolean;
}

/** Renewals a lease has room for: two may fail before it runs out. */
const RENEWALS_PER_LEASE = 3;

/** Renews the lease of a run while it goes on. */
export function keepLease<Tx>(options: LeaseKeeperOptions<Tx>): LeaseKeeper<Tx> {
  const { store, worker, epoch, leaseMs, clock, logger, deadline } = options;
  const everyMs = Math.max(1, Math.floor(leaseMs / RENEWALS_PER_LEASE));
  const ended = new AbortController();
  const lost = new AbortController();
  let until = options.claimedAtMs + leaseMs;

  const leaseLost = (detail: string): ReplaysafeError =>
    new ReplaysafeError('RS_LIFECYCLE_LEASE_LOST', { detail: `"${worker}", epoch ${String(epoch)}: ${detail}` });

  const lose = (detail: string): void => {
    if (lost.signal.aborted) return;
    logger.warn({ worker, epoch: String(epoch), reason: detail }, 'the lease of a worker was lost during its run');
    emit('lifecycle.lease-lost', { worker, epoch });
    lost.abort(leaseLost(detail));
  };

  const renew = async (): Promise<void> => {
    const askedAtMs = clock.monotonicMs();
    try {
      if (await store.renew(epoch, everyMs)) until = askedAtMs + leaseMs;
      else lose('another has taken it over');
    } catch (error) {
      logger.warn({ worker, err: error }, 'a lease could not be renewed; it is tried again');
      if (clock.monotonicMs() >= until) lose('it ran out before it could be renewed');
    }
  };

  const renewUntilEnded = async (): Promise<void> => {
    while (!lost.signal.aborted) {
      await pause(clock, Math.max(1, Math.min(everyMs, until - clock.monotonicMs())), ended.signal);
      if (ended.signal.aborted) return;
      await renew();
    }
  };
  const renewing = renewUntilEnded();

  const end = async (): Promise<void> => {
    ended.abort();
    deadline.removeEventListener('abort', giveUp);
    await renewing;
  };

  const giveUp = (): void => {
    void (async () => {
      await end();
      try {
        await store.surrender(epoch);
      } catch (error) {
        logger.warn({ worker, err: error }, 'a lease could not be given back; it runs out by itself');
      }
    })();
  };
  if (deadline.aborted) giveUp();
  else deadline.addEventListener('abort', giveUp, { once: true });

  return {
    lease: {
      epoch,
      lost: lost.signal,
      check: async (tx) => {
        if (await store.check(tx, epoch)) return;
        lose('another has taken it over');
        throw leaseLost('another has taken it over');
      },
    },
    end,
    live: () => !lost.signal.aborted && clock.monotonicMs() < until,
  };
}
