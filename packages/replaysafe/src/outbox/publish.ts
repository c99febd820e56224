import type { BrokerRecord, Publisher, PublishOutcome } from '../ports/broker.js';
import { deadlineAfter, pause, type Clock } from '../ports/clock.js';

export interface PublishAnswer {
  /** One for each record, in their order. */
  readonly outcomes: readonly PublishOutcome[];
  /** The end of the process cut the publish: what is open is no failure. */
  readonly interrupted: boolean;
  readonly durationMs: number;
}

/**
 * How long a publisher may take to answer once its deadline has passed; then what it has not said is unknown. A step of the
 * stop is left half a second behind its deadline, in which the claims have to be given back as well.
 */
const LAST_WORD_MS = 200;

/** Publishes one batch; never rejects and always ends, whatever the publisher does. */
export async function publishBatch(
  {
    publisher,
    clock,
    timeoutMs,
    abandon,
  }: { publisher: Publisher; clock: Clock; timeoutMs: number; abandon: AbortSignal },
  records: readonly BrokerRecord[],
): Promise<PublishAnswer> {
  const startedAt = clock.monotonicMs();
  const deadline = deadlineAfter(clock, timeoutMs, abandon);
  const answered = new AbortController();
  try {
    const outcomes = await Promise.race([
      ask(publisher, records, deadline.signal),
      silence(clock, deadline.signal, answered.signal).then(() => unknown('the publisher did not answer in time')),
    ]);
    return {
      outcomes: records.map((_, index) => checked(outcomes, index)),
      interrupted: abandon.aborted,
      durationMs: clock.monotonicMs() - startedAt,
    };
  } finally {
    answered.abort();
    deadline.dispose();
  }
}

type Answer = readonly PublishOutcome[] | PublishOutcome;

async function ask(publisher: Publisher, records: readonly BrokerRecord[], deadline: AbortSignal): Promise<Answer> {
  try {
    return await publisher.publish(records, deadline);
  } catch (error) {
    // A publisher tells outcomes by value; one that throws has told nothing about any record.
    return unknown(error instanceof Error ? error.message : String(error));
  }
}

/** Ends some time after the deadline has passed, or never. */
async function silence(clock: Clock, deadline: AbortSignal, answered: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (deadline.aborted) resolve();
    else {
      deadline.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true, signal: answered },
      );
    }
  });
  await pause(clock, LAST_WORD_MS, answered);
}

const STATUSES: ReadonlySet<unknown> = new Set(['stored', 'rejected', 'topic-refused', 'retriable', 'unknown']);

function checked(answer: Answer, index: number): PublishOutcome {
  if (!isList(answer)) return answer;
  const outcome = answer[index];
  return outcome && STATUSES.has(outcome.status) ? outcome : unknown('the publisher told no outcome for this record');
}

function isList(answer: Answer): answer is readonly PublishOutcome[] {
  return Array.isArray(answer);
}

function unknown(reason: string): PublishOutcome {
  return { status: 'unknown', reason };
}
