import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ConformanceCase } from '../conformance-case.js';
import type { BrokerHarness } from './harness.js';
import { elapsedMs, eventually, gate, numbers, within } from './steps.js';
import { collect, commitAll, stop, subscriberCase, subscription } from './subscribed.js';

/** How a subscriber ends. */
export const stopCases: readonly ConformanceCase<BrokerHarness>[] = [
  subscriberCase('stops in the middle of a batch without having it delivered again', async ({ harness, open }) => {
    const topic = await harness.createTopic({ partitions: 2 });
    for (const partition of [0, 1]) await harness.write(topic, partition, numbers(3));
    const working = gate();
    const outcomes: unknown[] = [];
    const { seen, onBatch } = collect(async (batch) => {
      await working.opened;
      outcomes.push(await commitAll(batch));
    });
    const subscriber = open();
    await subscriber.start(subscription(topic, onBatch));
    await seen.reaches(6);
    const stopping = stop(subscriber);
    await eventually('the handlers are told', () => seen.batches.every(({ revoking }) => revoking.aborted));
    ok(seen.batches.every(({ lost }) => !lost.aborted));
    working.open();
    await stopping;
    deepEqual(outcomes, ['committed', 'committed']);
    equal(subscriber.health().state, 'stopped');
    equal(await harness.memberCount(`${topic}-group`), 0);

    for (const partition of [0, 1]) await harness.write(topic, partition, ['new']);
    const second = collect();
    await open().start(subscription(topic, second.onBatch));
    await second.seen.reaches(2);
    deepEqual(second.seen.values(), ['new', 'new']);
  }),

  subscriberCase('delivers the rest after a stop between two batches of a fetch', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, numbers(10));
    const first = open();
    let stopping: Promise<void> | undefined;
    const before = collect(async (batch) => {
      await commitAll(batch);
      stopping ??= stop(first);
    });
    await first.start(subscription(topic, before.onBatch, { maxBatch: 2 }));
    await before.seen.reaches(2);
    await stopping;
    const after = collect();
    await open().start(subscription(topic, after.onBatch));
    await after.seen.reaches(8);
    deepEqual([...before.seen.values(), ...after.seen.values()], numbers(10));
  }),

  subscriberCase('leaves no member behind when it is stopped right after its start', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, ['1']);
    for (const roundMs of [0, 20, 50, 80, 110, 140, 170, 200]) {
      const { seen, onBatch } = collect();
      const subscriber = open();
      const started = subscriber.start(subscription(topic, onBatch));
      await within(
        roundMs,
        (passed) =>
          new Promise<void>((resolve) => {
            passed.addEventListener('abort', () => {
              resolve();
            });
          }),
      );
      await stop(subscriber);
      await started;
      const seenAtStop = seen.batches.length;
      await eventually('no member is left', async () => (await harness.memberCount(`${topic}-group`)) === 0);
      equal(seen.batches.length, seenAtStop);
    }
  }),

  subscriberCase('leaves no member behind when it is stopped while its join is held up', async ({ harness, open }) => {
    const topic = await harness.createTopic({ partitions: 2 });
    await harness.write(topic, 0, ['held']);
    const held = gate();
    const staying = collect(async (batch) => {
      await held.opened;
      await commitAll(batch);
    });
    await open().start(subscription(topic, staying.onBatch));
    await staying.seen.reaches(1);

    const leaving = collect();
    const subscriber = open();
    const started = subscriber.start(subscription(topic, leaving.onBatch));
    await eventually('the group waits for the handler', () =>
      staying.seen.batches.every((one) => one.revoking.aborted),
    );
    await within(200, (deadline) => subscriber.stop(deadline));
    held.open();
    await started;
    await eventually('one member is left', async () => (await harness.memberCount(`${topic}-group`)) === 1);
    for (const partition of [0, 1]) await harness.write(topic, partition, ['after']);
    await staying.seen.reaches(3);
    deepEqual(leaving.seen.values(), []);
    deepEqual(staying.seen.values(), ['held', 'after', 'after']);
  }),

  subscriberCase('stops by its deadline when a handler hangs, and tells it', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, ['1']);
    const hung = gate();
    const { seen, onBatch } = collect(() => hung.opened);
    const subscriber = open();
    await subscriber.start(subscription(topic, onBatch));
    await seen.reaches(1);
    const deadlineMs = 500;
    const took = await elapsedMs(() => within(deadlineMs, (deadline) => subscriber.stop(deadline)));
    ok(took < deadlineMs + 1_000, `took ${took} ms`);
    const [batch] = seen.batches;
    ok(batch?.lost.aborted);
    equal(await batch.commit(1n), 'fenced');
    hung.open();
  }),

  subscriberCase('stops by its deadline when the broker hangs', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, ['1']);
    const { seen, onBatch } = collect();
    const subscriber = open({ disturbed: true });
    await subscriber.start(subscription(topic, onBatch));
    await seen.reaches(1);
    harness.faults.withholdReplies();
    const deadlineMs = 500;
    const took = await elapsedMs(() => within(deadlineMs, (deadline) => subscriber.stop(deadline)));
    ok(took < deadlineMs + 1_000, `took ${took} ms`);
  }),

  subscriberCase('stops at once while the broker is down', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    harness.faults.down();
    const subscriber = open({ disturbed: true });
    const started = subscriber.start(subscription(topic, collect().onBatch));
    const took = await elapsedMs(() => stop(subscriber));
    await started;
    ok(took < 2_000, `took ${took} ms`);
    equal(subscriber.health().state, 'stopped');
  }),

  subscriberCase('can be stopped before its start, and twice', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    const subscriber = open();
    await stop(subscriber);
    await subscriber.start(subscription(topic, collect().onBatch));
    await Promise.all([stop(subscriber), stop(subscriber)]);
    await stop(subscriber);
    equal(subscriber.health().state, 'stopped');
  }),
];
