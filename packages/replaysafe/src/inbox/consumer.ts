import { ReplaysafeError, hasCode } from '../errors.js';
import type { ReceivedBatch, SubscriberHealth } from '../ports/broker.js';
import { deadlineAfter } from '../ports/clock.js';
import type { Resource } from '../ports/stop.js';
import { consumeBatch, type Waiting } from './batch.js';
import { parseConsumerOptions, type ConsumerOptions } from './consumer-options.js';
import { errorText } from './error-text.js';
import { attemptBook } from './item.js';
import { leaseOf, orAbort } from './lease.js';
import { processedEvents } from './processed.js';
import { inboxSql } from './sql.js';
import { bounded, interrupted, type Work } from './work.js';

export interface ConsumerHealth extends SubscriberHealth {
  /** Partitions whose batch failed and waits for its next try. */
  readonly waiting: readonly (Waiting & { readonly topic: string; readonly partition: number })[];
}

/** Applies the events of its topics, each once. */
export interface Consumer extends Resource, AsyncDisposable {
  /**
   * Joins the group and begins. A second call gives the first one's promise. A database that is down is waited for.
   * @throws RS_MIGRATE_PENDING, RS_INBOX_INTERRUPTED when `signals` tell of the end already, and what the subscriber's `start` throws
   */
  start(): Promise<void>;
  /**
   * Takes nothing new, lets running batches end (a batch that is being isolated ends between two records), commits their
   * offsets, leaves the group. When the deadline aborts, what still runs is rolled back and delivered again later. Without
   * a deadline: `stopTimeoutMs`. Twice or before `start`: harmless.
   */
  stop(deadline?: AbortSignal): Promise<void>;
  health(): ConsumerHealth;
}

/** One life, from start to stop. */
interface Life {
  readonly stopping: AbortController;
  readonly deadline: AbortController;
  readonly started: Promise<void>;
  stopped?: Promise<void>;
}

/**
 * A consumer whose effects happen once: the dedup rows of a batch, what the handlers write, and what they enqueue commit in one
 * transaction, and the offset follows.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createConsumer<Tx = unknown, Prepared = undefined>(given: ConsumerOptions<Tx, Prepared>): Consumer {
  const options = parseConsumerOptions(given);
  const { subscriber, logger, clock, consumer, signals } = options;
  const statements = inboxSql(options.schema);
  const work: Work<Tx, Prepared> = {
    options,
    statements,
    processed: processedEvents(options.sql, statements, consumer),
    attempts: attemptBook(),
  };
  const waiting = new Map<string, ConsumerHealth['waiting'][number]>();
  let life: Life | undefined;

  const onBatch = async (batch: ReceivedBatch, stopping: AbortSignal, deadline: AbortSignal): Promise<void> => {
    const { topic, partition } = batch;
    const lease = leaseOf(batch, { stopping, deadline });
    try {
      await consumeBatch(work, batch, lease, (reason) => {
        if (reason === undefined) waiting.delete(`${topic}/${partition}`);
        else waiting.set(`${topic}/${partition}`, { topic, partition, ...reason });
      });
    } catch (error) {
      // A batch whose partition goes may end early; any other begins again at what is committed.
      if (!lease.interrupted.aborted || !(batch.revoking.aborted || batch.lost.aborted)) throw error;
    } finally {
      lease.dispose();
    }
  };

  const begin = async (stopping: AbortSignal, deadline: AbortSignal): Promise<void> => {
    const stopped = (): boolean => stopping.aborted;
    try {
      await bounded(clock, () => work.processed.assertPresent(), stopping);
    } catch (error) {
      if (hasCode(error, 'RS_MIGRATE_PENDING')) throw error;
      logger.warn({ consumer, error: errorText(error) }, 'the database does not answer yet; the consumer waits for it');
    }
    if (stopped()) return;
    await subscriber.start({
      group: options.group,
      topics: options.topics,
      start: options.start,
      maxBatch: options.batchSize,
      onBatch: (batch) => onBatch(batch, stopping, deadline),
    });
    // A subscriber that is stopped while it joins may end its start like any other.
    if (stopped()) return;
    logger.info({ consumer, group: options.group, topics: options.topics }, 'the consumer has started');
  };

  const end = async ({ stopping, deadline, started }: Life): Promise<void> => {
    stopping.abort(interrupted());
    try {
      // No client's own close keeps a deadline, so it is kept here.
      await orAbort(
        (async () => {
          await subscriber.stop(deadline.signal);
          await started.catch(() => undefined);
        })(),
        deadline.signal,
      );
      logger.info({ consumer }, 'the consumer has stopped');
    } catch (error) {
      logger.warn({ consumer, error: errorText(error) }, 'the consumer did not stop in time and was abandoned');
    }
  };

  const expire = (ending: Life): void => {
    ending.deadline.abort(new ReplaysafeError('RS_INBOX_INTERRUPTED', { detail: 'the stop has reached its deadline' }));
  };

  const self: Consumer = {
    name: `consumer:${consumer}`,
    async start() {
      if (life !== undefined) return life.started;
      if (signals?.stopping.aborted) throw interrupted();
      const stopping = new AbortController();
      const deadline = new AbortController();
      const started = begin(stopping.signal, deadline.signal);
      const begun: Life = { stopping, deadline, started };
      life = begun;
      started.catch(() => {
        if (life === begun && begun.stopped === undefined) life = undefined;
      });
      return started;
    },
    async stop(given) {
      if (life === undefined) return;
      const ending = life;
      const limit = given === undefined ? deadlineAfter(clock, options.stopTimeoutMs, signals?.deadline) : undefined;
      // A second call may be in more of a hurry than the first.
      const source = given ?? limit?.signal;
      const cut = (): void => {
        expire(ending);
      };
      if (source?.aborted) cut();
      else source?.addEventListener('abort', cut, { once: true });
      try {
        ending.stopped ??= end(ending);
        await ending.stopped;
      } finally {
        source?.removeEventListener('abort', cut);
        limit?.dispose();
        if (life === ending) life = undefined;
      }
    },
    health: () => ({ ...subscriber.health(), waiting: [...waiting.values()] }),
    [Symbol.asyncDispose]: () => self.stop(),
  };
  signals?.stopping.addEventListener('abort', () => void self.stop(), { once: true });
  return self;
}
