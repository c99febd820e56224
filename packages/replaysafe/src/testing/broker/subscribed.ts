import type { ReceivedBatch, ReceivedRecord, SubscribeOptions, Subscriber } from '../../ports/broker.js';
import type { ConformanceCase } from '../conformance-case.js';
import type { BrokerHarness } from './harness.js';
import { eventually, valueOf, within } from './steps.js';

/** Subscribers of one case, all stopped at its end. */
export interface SubscriberCase {
  readonly harness: BrokerHarness;
  readonly open: (options?: { readonly disturbed?: boolean }) => Subscriber;
}

export function subscriberCase(
  name: string,
  run: (given: SubscriberCase) => Promise<void>,
): ConformanceCase<BrokerHarness> {
  return {
    name,
    run: async (harness) => {
      const opened: Subscriber[] = [];
      try {
        await run({
          harness,
          open: (options) => {
            const subscriber = harness.openSubscriber(options);
            opened.push(subscriber);
            return subscriber;
          },
        });
      } finally {
        harness.faults.resume();
        await Promise.all(opened.map((subscriber) => stop(subscriber)));
      }
    },
  };
}

export const stop = (subscriber: Subscriber): Promise<void> => within(10_000, (deadline) => subscriber.stop(deadline));

/** What one subscriber was given. */
export interface Seen {
  readonly records: ReceivedRecord[];
  readonly batches: ReceivedBatch[];
  values(): string[];
  reaches(count: number): Promise<void>;
}

/** A handler that keeps what it is given and then does `after`. */
export function collect(after: (batch: ReceivedBatch) => Promise<unknown> = commitAll) {
  const seen: Seen = {
    records: [],
    batches: [],
    values: () => seen.records.map(valueOf),
    reaches: (count) => eventually(`${count} records arrive`, () => seen.records.length >= count),
  };
  const onBatch = async (batch: ReceivedBatch): Promise<void> => {
    seen.batches.push(batch);
    seen.records.push(...batch.records);
    await after(batch);
  };
  return { seen, onBatch };
}

export const nextOffset = ({ records }: ReceivedBatch): bigint => (records.at(-1)?.offset ?? -1n) + 1n;

export const commitAll = (batch: ReceivedBatch): Promise<unknown> => batch.commit(nextOffset(batch));

export const subscription = (
  topic: string,
  onBatch: SubscribeOptions['onBatch'],
  options: Partial<SubscribeOptions> = {},
): SubscribeOptions => ({ group: `${topic}-group`, topics: [topic], maxBatch: 100, onBatch, ...options });
