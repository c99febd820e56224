import { deepEqual, equal, ok } from 'node:assert/strict';
import { pause, systemClock } from '../../ports/clock.js';
import type { ReceivedBatch } from '../../ports/broker.js';
import type { ConformanceCase } from '../conformance-case.js';
import type { BrokerHarness } from './harness.js';
import { eventually, gate, numbers } from './steps.js';
import { collect, commitAll, nextOffset, stop, subscriberCase, subscription } from './subscribed.js';

/** Who may commit what, and how long a member is one. */
export const membershipCases: readonly ConformanceCase<BrokerHarness>[] = [
  subscriberCase('never commits backwards', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, numbers(10));
    const outcomes: string[] = [];
    const { seen, onBatch } = collect(async (batch) => {
      for (const offset of [8n, 2n, 8n]) outcomes.push(await batch.commit(offset));
    });
    await open().start(subscription(topic, onBatch));
    await seen.reaches(10);
    await eventually('the commits are answered', () => outcomes.length === 3);
    deepEqual(outcomes, ['committed', 'committed', 'committed']);
    equal(await harness.committed(`${topic}-group`, topic, 0), 8n);
  }),

  subscriberCase('shares the partitions among the members of a group', async ({ harness, open }) => {
    const topic = await harness.createTopic({ partitions: 4 });
    const members = [collect(), collect()];
    await Promise.all(members.map(({ onBatch }) => open().start(subscription(topic, onBatch))));
    await eventually('both are members', async () => (await harness.memberCount(`${topic}-group`)) === 2);
    for (const partition of [0, 1, 2, 3]) await harness.write(topic, partition, [`first ${partition}`]);
    await eventually('all arrive', () => new Set(members.flatMap(({ seen }) => seen.values())).size === 4);
    for (const { seen } of members) seen.records.length = 0;
    for (const partition of [0, 1, 2, 3]) await harness.write(topic, partition, numbers(5));
    await eventually('all arrive', () => members.flatMap(({ seen }) => seen.records).length >= 20);
    for (const { seen } of members) equal(new Set(seen.records.map(({ partition }) => partition)).size, 2);
  }),

  subscriberCase('stays a member while a handler runs for longer than the session', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, numbers(2));
    const outcomes: unknown[] = [];
    const { seen, onBatch } = collect(async (batch) => {
      await pause(systemClock, harness.sessionTimeoutMs * 2);
      outcomes.push(batch.lost.aborted, batch.revoking.aborted, await commitAll(batch));
    });
    await open().start(subscription(topic, onBatch));
    await eventually('the handler has ended', () => outcomes.length > 0, harness.sessionTimeoutMs * 4 + 10_000);
    deepEqual(outcomes, [false, false, 'committed']);
    equal(seen.batches.length, 1);
  }),

  subscriberCase(
    'lets a running handler commit before its partition moves to a new member',
    async ({ harness, open }) => {
      const topic = await harness.createTopic({ partitions: 2 });
      for (const partition of [0, 1]) await harness.write(topic, partition, numbers(3));
      const outcomes: string[] = [];
      const first = collect(async (batch) => {
        // A handler that heeds the sign and commits what it has done.
        await aborted(batch.revoking);
        outcomes.push(await batch.commit(nextOffset(batch)));
      });
      await open().start(subscription(topic, first.onBatch));
      await first.seen.reaches(6);
      const second = collect();
      await open().start(subscription(topic, second.onBatch));
      await eventually('both handlers have committed', () => outcomes.length === 2);
      deepEqual(outcomes, ['committed', 'committed']);
      for (const partition of [0, 1]) await harness.write(topic, partition, ['after']);
      const arrived = () => [...first.seen.values().slice(6), ...second.seen.values()];
      await eventually('the rest arrives', () => arrived().length >= 2);
      deepEqual(arrived(), ['after', 'after']);
    },
  ),

  subscriberCase(
    'fences a member that lost its partition, and leaves the offset of its successor',
    async ({ harness, open }) => {
      const topic = await harness.createTopic();
      await harness.write(topic, 0, numbers(6));
      const zombie: { batch?: ReceivedBatch } = {};
      const resumed = gate();
      const first = collect(async (batch) => {
        if (zombie.batch) return;
        zombie.batch = batch;
        await resumed.opened;
      });
      await open({ disturbed: true }).start(subscription(topic, first.onBatch));
      await first.seen.reaches(6);
      harness.faults.down();

      const second = collect();
      await open().start(subscription(topic, second.onBatch));
      await second.seen.reaches(6);
      await eventually(
        'the successor commits',
        async () => (await harness.committed(`${topic}-group`, topic, 0)) === 6n,
      );

      const { batch } = zombie;
      ok(batch);
      await eventually('the loss is noticed', () => batch.lost.aborted);
      harness.faults.resume();
      equal(await batch.commit(3n), 'fenced');
      equal(await harness.committed(`${topic}-group`, topic, 0), 6n);
      resumed.open();
    },
  ),

  subscriberCase('joins by itself when the broker comes up after it', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, ['1']);
    harness.faults.down();
    const { seen, onBatch } = collect();
    const subscriber = open({ disturbed: true });
    const started = subscriber.start(subscription(topic, onBatch));
    equal(subscriber.health().state, 'joining');
    harness.faults.resume();
    await started;
    equal(subscriber.health().state, 'joined');
    await seen.reaches(1);
  }),

  subscriberCase('goes on by itself after the broker was away for longer than a session', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, ['1']);
    const { seen, onBatch } = collect();
    const subscriber = open({ disturbed: true });
    await subscriber.start(subscription(topic, onBatch));
    await seen.reaches(1);
    harness.faults.down();
    await eventually(
      'the member is dropped',
      async () => (await harness.memberCount(`${topic}-group`)) === 0,
      harness.sessionTimeoutMs * 3 + 10_000,
    );
    harness.faults.resume();
    await harness.write(topic, 0, ['2']);
    await eventually('the next record arrives', () => seen.values().at(-1) === '2', 40_000);
    // The commit of the first may have been what the outage cut: it may come again, but nothing may be missing.
    deepEqual([...new Set(seen.values())], ['1', '2']);
    await stop(subscriber);
  }),
];

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
