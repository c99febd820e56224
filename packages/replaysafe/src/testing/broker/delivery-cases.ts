import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import type { ConformanceCase } from '../conformance-case.js';
import type { BrokerHarness } from './harness.js';
import { eventually, gate, numbers, valuesOf } from './steps.js';
import { collect, commitAll, stop, subscriberCase, subscription } from './subscribed.js';

/** What is delivered, how, and from where. */
export const deliveryCases: readonly ConformanceCase<BrokerHarness>[] = [
  subscriberCase('starts a new group at the earliest offset (P17)', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, numbers(4));
    const { seen, onBatch } = collect();
    await open().start(subscription(topic, onBatch));
    await seen.reaches(4);
    deepEqual(seen.values(), numbers(4));
  }),

  subscriberCase(
    'starts a new group at the latest offset where that is asked for, and keeps that place',
    async ({ harness, open }) => {
      const topic = await harness.createTopic();
      await harness.write(topic, 0, ['old']);
      const first = open();
      await first.start(subscription(topic, collect().onBatch, { start: 'latest' }));
      await eventually('the place is kept', async () => (await harness.committed(`${topic}-group`, topic, 0)) === 1n);
      await stop(first);
      await harness.write(topic, 0, ['new']);
      const { seen, onBatch } = collect();
      await open().start(subscription(topic, onBatch, { start: 'latest' }));
      await seen.reaches(1);
      deepEqual(seen.values(), ['new']);
    },
  ),

  subscriberCase(
    'delivers ascending batches of one partition, cut to the size that is asked for',
    async ({ harness, open }) => {
      const topic = await harness.createTopic({ partitions: 2 });
      for (const partition of [0, 1]) await harness.write(topic, partition, numbers(25));
      const { seen, onBatch } = collect();
      await open().start(subscription(topic, onBatch, { maxBatch: 7 }));
      await seen.reaches(50);
      for (const batch of seen.batches) {
        ok(batch.records.length > 0 && batch.records.length <= 7);
        ok(batch.records.every((one) => one.partition === batch.partition && one.topic === topic));
      }
      for (const partition of [0, 1]) {
        deepEqual(valuesOf(seen.records.filter((one) => one.partition === partition)), numbers(25));
      }
    },
  ),

  subscriberCase('has at most one batch of a partition outstanding', async ({ harness, open }) => {
    const topic = await harness.createTopic({ partitions: 2 });
    for (const partition of [0, 1]) await harness.write(topic, partition, numbers(10));
    const outstanding = [0, 0];
    const { seen, onBatch } = collect(async (batch) => {
      const { partition } = batch;
      outstanding[partition] = (outstanding[partition] ?? 0) + 1;
      equal(outstanding[partition], 1);
      await commitAll(batch);
      outstanding[partition] = 0;
    });
    await open().start(subscription(topic, onBatch, { maxBatch: 1 }));
    await seen.reaches(20);
    equal(seen.records.length, 20);
  }),

  subscriberCase('delivers a refused batch again, and meanwhile the other partitions', async ({ harness, open }) => {
    const topic = await harness.createTopic({ partitions: 2 });
    await harness.write(topic, 0, ['a', 'b']);
    await harness.write(topic, 1, ['other']);
    let refusals = 0;
    const { seen, onBatch } = collect(async (batch) => {
      if (batch.partition === 0 && refusals++ < 8) throw new Error('refused by the test');
      await commitAll(batch);
    });
    const subscriber = open();
    await subscriber.start(subscription(topic, onBatch));
    await seen.reaches(19);
    const tries = seen.batches.filter(({ partition }) => partition === 0).map(({ records }) => valuesOf(records));
    deepEqual(tries, Array(9).fill(['a', 'b']));
    deepEqual(valuesOf(seen.records.filter(({ partition }) => partition === 1)), ['other']);
    // A refusal is no reason to leave the group, which would take the other partitions along.
    ok(seen.batches.every(({ lost }) => !lost.aborted));
  }),

  subscriberCase('delivers again what was not committed', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    await harness.write(topic, 0, numbers(3));
    const first = collect(() => Promise.resolve());
    const member = open();
    await member.start(subscription(topic, first.onBatch));
    await first.seen.reaches(3);
    await stop(member);
    const second = collect();
    await open().start(subscription(topic, second.onBatch));
    await second.seen.reaches(3);
    deepEqual(second.seen.values(), numbers(3));
  }),

  subscriberCase(
    'halts a partition whose next offset has expired, instead of jumping (P17)',
    async ({ harness, open }) => {
      const topic = await harness.createTopic({ partitions: 2 });
      await harness.write(topic, 0, numbers(10));
      const member = open();
      const first = collect(async (batch) => {
        await batch.commit(4n);
      });
      await member.start(subscription(topic, first.onBatch));
      await first.seen.reaches(10);
      await stop(member);
      await harness.deleteBefore(topic, 0, 6n);
      await harness.write(topic, 1, ['other partition']);

      const second = collect();
      const subscriber = open();
      await subscriber.start(subscription(topic, second.onBatch));
      await eventually('the halt is told', () => (subscriber.health().halted?.length ?? 0) === 1);
      await second.seen.reaches(1);
      deepEqual(second.seen.values(), ['other partition']);
      equal(await harness.committed(`${topic}-group`, topic, 0), 4n);
    },
  ),

  ...(
    [
      ['', 4n],
      [', also when nothing newer is kept', 6n],
    ] as const
  ).map(([addition, deletedBefore]) =>
    subscriberCase(
      `halts a partition whose next offset expires while it runs${addition} (P17)`,
      async ({ harness, open }) => {
        const topic = await harness.createTopic();
        await harness.write(topic, 0, ['0']);
        const blocked = gate();
        const { seen, onBatch } = collect(async (batch) => {
          await commitAll(batch);
          await blocked.opened;
        });
        const subscriber = open();
        await subscriber.start(subscription(topic, onBatch));
        await seen.reaches(1);
        await harness.write(topic, 0, numbers(5));
        await harness.deleteBefore(topic, 0, deletedBefore);
        blocked.open();
        await eventually('the halt is told', () => (subscriber.health().halted?.length ?? 0) === 1);
        deepEqual(seen.values(), ['0']);
        equal(await harness.committed(`${topic}-group`, topic, 0), 1n);
      },
    ),
  ),

  subscriberCase('refuses to start on a topic that does not exist', async ({ harness, open }) => {
    const topic = await harness.createTopic();
    const started = open().start(subscription(topic, collect().onBatch, { topics: [topic, `${topic}-missing`] }));
    await rejects(started, (error: { code?: unknown }) => error.code === 'RS_BROKER_TOPIC_MISSING');
    equal(await harness.memberCount(`${topic}-group`), 0);
  }),
];
