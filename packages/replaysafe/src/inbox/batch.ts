import { emit } from '../events.js';
import type { ReceivedBatch } from '../ports/broker.js';
import { pause } from '../ports/clock.js';
import { backoffDelay } from '../retry/backoff.js';
import { classify } from './classify.js';
import { parkEvent } from './dead-letter.js';
import { errorText } from './error-text.js';
import { readItems, runFrom, type Item, type Surrender } from './item.js';
import type { Lease } from './lease.js';
import { prepareRun } from './prepare.js';
import { progressOf, type Progress } from './progress.js';
import { runTransaction, turnsOf, type Place } from './run.js';
import { afterAttempt, afterFailure, type RunFailure } from './states.js';
import { bounded, databaseAnswers, interrupted, type Work } from './work.js';

/** Why a batch waits, for the consumer's health. */
export interface Waiting {
  readonly failures: number;
  /** Whether it waits for the database or a remote system, rather than for a handler. */
  readonly infrastructure: boolean;
  readonly error: string;
}

/**
 * Works one batch off: as few transactions as its failures allow, the offset after the commit. Resolves when every record of it
 * is settled.
 * @throws RS_INBOX_INTERRUPTED when it ended before that; what is settled by then is committed
 */
export async function consumeBatch<Tx, Prepared>(
  work: Work<Tx, Prepared>,
  batch: ReceivedBatch,
  lease: Lease,
  waiting: (reason: Waiting | undefined) => void,
): Promise<void> {
  await new BatchWork(work, batch, lease, waiting).run();
}

class BatchWork<Tx, Prepared> {
  readonly #work: Work<Tx, Prepared>;
  readonly #lease: Lease;
  readonly #waiting: (reason: Waiting | undefined) => void;
  readonly #place: Place;
  readonly #items: Item[];
  readonly #progress: Progress;
  /** First item that is not settled. */
  #position = 0;
  /** A run goes no further than this; beyond it may stand what made a larger one fail. */
  #limit: number;
  #infrastructureFailures = 0;
  #contentions = 0;

  constructor(
    work: Work<Tx, Prepared>,
    batch: ReceivedBatch,
    lease: Lease,
    waiting: (reason: Waiting | undefined) => void,
  ) {
    this.#work = work;
    this.#lease = lease;
    this.#waiting = waiting;
    this.#place = { topic: batch.topic, partition: batch.partition };
    this.#items = readItems(batch.records, work.options, work.attempts);
    this.#limit = this.#items.length;
    this.#progress = progressOf(work, batch, lease);
  }

  async run(): Promise<void> {
    emit('inbox.received', { ...this.#where(), count: this.#items.length });
    try {
      for (let item = this.#next(); item !== undefined; item = this.#next()) {
        if (this.#lease.cut.aborted) throw interrupted();
        if (this.#lease.ending.aborted) {
          await this.#progress.commit();
          throw interrupted();
        }
        if (item.surrender !== undefined && !item.duplicate) await this.#park(item, item.surrender);
        else await this.#apply(runFrom(this.#items, this.#position, this.#limit));
      }
      await this.#progress.commit();
    } finally {
      this.#waiting(undefined);
    }
  }

  #next(): Item | undefined {
    return this.#items[this.#position];
  }

  async #apply(run: readonly Item[]): Promise<void> {
    const ready = await this.#prepare(run);
    if (ready === undefined) return;
    const group = run.slice(0, ready);
    const turns = turnsOf<Prepared>(group);
    if (turns.length === 0) {
      this.#settle(group, []);
      return;
    }
    const outcome = await runTransaction(this.#work, this.#place, turns, this.#lease);
    if (outcome.status === 'committed') this.#settle(group, outcome.fresh);
    else if (outcome.status === 'failed') {
      if (outcome.stranded !== undefined) await this.#takeBack(outcome.stranded);
      await this.#recover(group, outcome.failure);
    }
  }

  /**
   * Whoever gets these events next would take them for processed, so it is tried on even when the partition is lost; only the
   * stop's deadline ends it.
   */
  async #takeBack({ xid, eventIds }: { readonly xid: string; readonly eventIds: readonly string[] }): Promise<void> {
    const { clock, random, retryBackoff } = this.#work.options;
    for (let attempt = 1; eventIds.length > 0; attempt++) {
      try {
        await bounded(clock, () => this.#work.processed.takeBack(eventIds, xid));
        return;
      } catch (error) {
        this.#report(error, attempt, true, undefined);
        if (this.#lease.deadline.aborted) return;
        await pause(clock, backoffDelay({ ...retryBackoff, attempt, random }), this.#lease.deadline);
      }
    }
  }

  /** How many items at the front may go on; undefined where none may and the failure has been dealt with. */
  async #prepare(run: readonly Item[]): Promise<number | undefined> {
    if (this.#work.options.prepare === undefined) return run.length;
    let ready: number;
    const [first] = run;
    try {
      // A first item that failed while others ran has had its try.
      ready = first?.preparation.state === 'failed' ? 0 : await prepareRun(this.#work, this.#place, run, this.#lease);
    } catch (error) {
      await this.#recover(run, { kind: 'infrastructure', error, culprit: undefined });
      return undefined;
    }
    if (ready > 0) return ready;
    if (first?.preparation.state === 'failed' && !this.#lease.cut.aborted) {
      const { error } = first.preparation;
      first.preparation = { state: 'none' };
      const failure = await classify(
        { error, where: 'inside', culprit: undefined, transactionFailure: undefined },
        () => databaseAnswers(this.#work),
      );
      await this.#recover([first], failure);
    }
    return undefined;
  }

  async #recover(group: readonly Item[], failure: RunFailure): Promise<void> {
    if (failure.kind === 'contention') this.#contentions++;
    const turns = group.filter((item) => !item.duplicate);
    const next = afterFailure(failure, {
      length: turns.length,
      contentions: this.#contentions,
      maxContentions: this.#work.options.maxContentions,
    });
    const [first] = turns;
    if (next.step === 'count' && first !== undefined) {
      await this.#count(first, failure.error);
      return;
    }
    const failures =
      failure.kind === 'infrastructure' ? ++this.#infrastructureFailures : Math.max(1, this.#contentions);
    this.#report(failure.error, failures, failure.kind === 'infrastructure', undefined);
    if (next.step === 'isolate') {
      const culprit = turns[next.culprit];
      if (culprit !== undefined) culprit.alone = true;
    } else if (next.step === 'halve') {
      const last = turns[next.length - 1];
      if (last !== undefined) this.#limit = this.#items.indexOf(last) + 1;
    } else {
      await this.#backOff(failures);
    }
  }

  async #count(item: Item, error: unknown): Promise<void> {
    const { maxAttempts, deadLetters } = this.#work.options;
    item.attempts++;
    this.#work.attempts.set(item.record, item.attempts);
    // A new attempt asks anew: what was prepared may be what the handler chokes on.
    if (item.preparation.state === 'ready') item.preparation = { state: 'none' };
    const next = afterAttempt(item.attempts, maxAttempts, deadLetters);
    this.#report(error, item.attempts, false, item, { maxAttempts, last: next === 'park' });
    if (next === 'park') {
      item.surrender = { code: 'RS_INBOX_ATTEMPTS_EXHAUSTED', error };
      return;
    }
    await this.#backOff(item.attempts);
  }

  async #park(item: Item, surrender: Surrender): Promise<void> {
    if (this.#work.options.deadLetters === 'stall') {
      item.attempts++;
      this.#report(surrender.error, item.attempts, false, item);
      await this.#backOff(item.attempts);
      return;
    }
    let parked: boolean;
    try {
      parked = await parkEvent(this.#work, item, surrender, this.#lease);
    } catch (error) {
      // Whatever it was: an event is not passed over until its dead letter is durable.
      if (this.#lease.cut.aborted) return;
      this.#report(error, ++this.#infrastructureFailures, true, item);
      await this.#backOff(this.#infrastructureFailures);
      return;
    }
    const id = item.content.id ?? '';
    if (parked) {
      this.#work.options.logger.error(
        { ...this.#where(), offset: item.record.offset.toString(), eventId: id, code: surrender.code },
        'the event was given up on, its dead letter is in the outbox',
      );
      emit('inbox.parked', { ...this.#where(), eventId: id, reason: surrender.code });
    }
    this.#advance([item]);
    if (!parked) emit('inbox.duplicate', { ...this.#where(), eventIds: [id] });
  }

  #settle(group: readonly Item[], fresh: readonly string[]): void {
    const isFresh = new Set(fresh);
    const duplicates: string[] = [];
    for (const { content, duplicate } of group) {
      if (content.id !== undefined && (duplicate || !isFresh.has(content.id))) duplicates.push(content.id);
    }
    if (fresh.length > 0) {
      emit('inbox.committed', { ...this.#where(), eventIds: fresh, duplicates: duplicates.length });
    }
    if (duplicates.length > 0) emit('inbox.duplicate', { ...this.#where(), eventIds: duplicates });
    this.#advance(group);
  }

  #advance(group: readonly Item[]): void {
    for (const item of group) {
      this.#work.attempts.forget(item.record);
      this.#progress.settledUpTo(item.record.offset + 1n);
    }
    this.#position += group.length;
    if (this.#position >= this.#limit) this.#limit = this.#items.length;
    this.#infrastructureFailures = 0;
    this.#contentions = 0;
    this.#waiting(undefined);
  }

  #report(
    error: unknown,
    attempt: number,
    infrastructure: boolean,
    item: Item | undefined,
    counted?: { readonly maxAttempts: number; readonly last: boolean },
  ): void {
    const shown = errorText(error);
    this.#work.options.logger.warn(
      {
        ...this.#where(),
        ...(item === undefined ? {} : { offset: item.record.offset.toString(), eventId: item.content.id }),
        error: shown,
        attempt,
        ...(counted === undefined ? {} : { maxAttempts: counted.maxAttempts }),
        infrastructure,
      },
      counted?.last === true
        ? 'an event failed in its last attempt'
        : 'a batch or an event failed and will be tried again',
    );
    emit('inbox.failed', { ...this.#where(), error, attempt, infrastructure });
    this.#waiting({ failures: attempt, infrastructure, error: shown });
  }

  async #backOff(failures: number): Promise<void> {
    // What is durable need not wait with the rest.
    await this.#progress.commit();
    const { clock, random, retryBackoff } = this.#work.options;
    await pause(clock, backoffDelay({ ...retryBackoff, attempt: failures, random }), this.#lease.interrupted);
  }

  #where() {
    return { consumer: this.#work.options.consumer, ...this.#place };
  }
}
