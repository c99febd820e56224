import { deadlineAfter, pause, systemClock } from '../../ports/clock.js';
import type { BrokerRecord, Publisher, PublishOutcome, ReceivedRecord } from '../../ports/broker.js';

/** Runs a step with a deadline signal of so many milliseconds. */
export async function within<T>(ms: number, step: (deadline: AbortSignal) => Promise<T>): Promise<T> {
  const limit = deadlineAfter(systemClock, ms);
  try {
    return await step(limit.signal);
  } finally {
    limit.dispose();
  }
}

export function record(topic: string, key: string | null, value: string): BrokerRecord {
  return { topic, key, value: Buffer.from(value), headers: { 'event-id': value } };
}

export const valueOf = ({ value }: ReceivedRecord): string => (value === null ? '' : Buffer.from(value).toString());

export const valuesOf = (records: readonly ReceivedRecord[]): string[] => records.map(valueOf);

export const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index));

/** Looks again and again at something outside this process, until it is as expected. */
export async function eventually(what: string, look: () => Promise<boolean> | boolean, ms = 20_000): Promise<void> {
  const until = systemClock.monotonicMs() + ms;
  while (!(await look())) {
    if (systemClock.monotonicMs() > until) throw new Error(`not in ${ms} ms: ${what}`);
    await pause(systemClock, 25);
  }
}

/** A promise that is settled from outside. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return {
    opened,
    open: () => {
      open();
    },
  };
}

/** Publishes until everything is stored, as a relay does: the same record again after anything but `stored`. */
export async function publishUntilStored(publisher: Publisher, records: readonly BrokerRecord[]): Promise<void> {
  let open = records;
  await eventually('every record is stored', async () => {
    const outcomes: readonly PublishOutcome[] = await within(5_000, (deadline) => publisher.publish(open, deadline));
    open = open.filter((_, index) => outcomes[index]?.status !== 'stored');
    return open.length === 0;
  });
}

export async function elapsedMs(step: () => Promise<unknown>): Promise<number> {
  const started = systemClock.monotonicMs();
  await step();
  return systemClock.monotonicMs() - started;
}
