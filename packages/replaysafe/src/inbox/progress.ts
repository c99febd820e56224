import { emit } from '../events.js';
import type { ReceivedBatch } from '../ports/broker.js';
import { pause } from '../ports/clock.js';
import { backoffDelay } from '../retry/backoff.js';
import type { Lease } from './lease.js';
import { orAbort } from './lease.js';
import type { Work } from './work.js';

/** How far a batch is durable, and how far the broker knows. */
export interface Progress {
  /** Everything before this offset is settled. */
  settledUpTo(nextOffset: bigint): void;
  /**
   * Tells the broker, if there is something to tell. An offset that cannot be stored is no failure of the batch: a later one
   * covers it, and what is delivered again is dropped by its dedup rows.
   */
  commit(): Promise<void>;
}

const TRIES = 3;

export function progressOf<Tx, Prepared>(work: Work<Tx, Prepared>, batch: ReceivedBatch, lease: Lease): Progress {
  const { clock, random, retryBackoff, consumer, logger } = work.options;
  const place = { consumer, topic: batch.topic, partition: batch.partition };
  let durable: bigint | undefined;
  let told: bigint | undefined;

  return {
    settledUpTo(nextOffset) {
      durable = nextOffset;
    },
    async commit() {
      for (let attempt = 1; durable !== undefined && durable !== told && !lease.cut.aborted; attempt++) {
        const nextOffset = durable;
        const outcome = await orAbort(batch.commit(nextOffset), lease.cut).catch(() => 'fenced' as const);
        if (outcome === 'committed') {
          told = nextOffset;
          emit('inbox.offset-committed', { ...place, nextOffset });
          return;
        }
        if (outcome === 'fenced' || attempt === TRIES) {
          logger.info({ ...place, nextOffset: nextOffset.toString(), outcome }, 'the offset was not stored');
          return;
        }
        await pause(clock, backoffDelay({ ...retryBackoff, attempt, random }), lease.interrupted);
      }
    },
  };
}
