import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Publisher } from '../ports/broker.js';
import type { ConformanceCase } from './conformance-case.js';
import { HARNESS_MAX_RECORD_BYTES, type BrokerHarness } from './broker/harness.js';
import {
  elapsedMs,
  eventually,
  numbers,
  publishUntilStored,
  record,
  valueOf,
  valuesOf,
  within,
} from './broker/steps.js';

/**
 * What every publisher must do, on a real broker. Cases run one after the other and leave the faults ended. Publishers that are opened
 * reject records above {@link HARNESS_MAX_RECORD_BYTES}.
 */
export function publisherConformance(): readonly ConformanceCase<BrokerHarness>[] {
  return [
    testCase('keeps the order of each key, within a call and across calls', async (harness, publisher) => {
      const topic = await harness.createTopic({ partitions: 3 });
      const keys = ['a', 'b', 'c', 'd', 'e'];
      for (const call of ['0', '1', '2']) {
        const records = numbers(20).flatMap((at) => keys.map((key) => record(topic, key, `${key}:${call}:${at}`)));
        const outcomes = await within(10_000, (deadline) => publisher.publish(records, deadline));
        deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['stored']));
      }
      const stored = await harness.read(topic);
      for (const key of keys) {
        const mine = stored.filter((one) => one.key !== null && Buffer.from(one.key).toString() === key);
        const expected = ['0', '1', '2'].flatMap((call) => numbers(20).map((at) => `${key}:${call}:${at}`));
        deepEqual(valuesOf(mine), expected);
        equal(new Set(mine.map(({ partition }) => partition)).size, 1);
      }
    }),

    testCase('carries headers, keys and values byte for byte', async (harness, publisher) => {
      const topic = await harness.createTopic();
      const headers = { 'event-id': 'é✓\u{1F600}', empty: '', 'rs-error': 'a\tb\u0000c', traceparent: '00-ab-cd-01' };
      const value = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
      const sent = [
        { topic, key: 'Schlüssel', value, headers },
        { topic, key: null, value: null, headers: {} },
        { topic, key: '', value: new Uint8Array(0), headers: {} },
      ];
      await publishUntilStored(publisher, sent);
      const [first, tombstone, empty] = await harness.read(topic);
      ok(first && tombstone && empty);
      deepEqual(Buffer.from(first.value ?? []), value);
      deepEqual(Buffer.from(first.key ?? []).toString(), 'Schlüssel');
      deepEqual(
        Object.fromEntries(Object.entries(first.headers).map(([name, bytes]) => [name, Buffer.from(bytes).toString()])),
        headers,
      );
      deepEqual([tombstone.key, tombstone.value], [null, null]);
      deepEqual([empty.key?.length, empty.value?.length], [0, 0]);
    }),

    testCase(
      'rejects an oversize record without its neighbours, and lets nothing of its key pass it',
      async (harness, publisher) => {
        const topic = await harness.createTopic();
        const large = { ...record(topic, 'a', ''), value: Buffer.alloc(HARNESS_MAX_RECORD_BYTES + 1) };
        const records = [record(topic, 'a', '1'), large, record(topic, 'a', '2'), record(topic, 'b', '3')];
        const outcomes = await within(10_000, (deadline) => publisher.publish(records, deadline));
        deepEqual(
          outcomes.map(({ status }) => status),
          ['stored', 'rejected', 'retriable', 'stored'],
        );
        deepEqual(valuesOf(await harness.read(topic)), ['1', '3']);
      },
    ),

    testCase('finds the oversize record when only the broker knows the limit', async (harness, publisher) => {
      const topic = await harness.createTopic({ maxMessageBytes: 20_000 });
      const small = numbers(9).map((at) => record(topic, at, at));
      const large = { ...record(topic, 'large', ''), value: Buffer.alloc(50_000) };
      const records = [...small.slice(0, 4), large, record(topic, 'large', 'behind'), ...small.slice(4)];
      const outcomes = await within(15_000, (deadline) => publisher.publish(records, deadline));
      deepEqual(
        outcomes.map(({ status }) => status),
        [...Array<string>(4).fill('stored'), 'rejected', 'retriable', ...Array<string>(5).fill('stored')],
      );
      deepEqual(new Set(valuesOf(await harness.read(topic))), new Set(numbers(9)));
    }),

    testCase('stores a batch whose records fit and whose sum does not', async (harness, publisher) => {
      const topic = await harness.createTopic({ maxMessageBytes: HARNESS_MAX_RECORD_BYTES });
      const body = Buffer.alloc(HARNESS_MAX_RECORD_BYTES / 4);
      const records = numbers(12).map((at) => ({
        ...record(topic, 'a', at),
        value: Buffer.concat([Buffer.from(at), body]),
      }));
      const outcomes = await within(15_000, (deadline) => publisher.publish(records, deadline));
      deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['stored']));
      const stored = await harness.read(topic);
      deepEqual(
        stored.map(valueOf).map((text) => text.replaceAll('\0', '')),
        numbers(12),
      );
    }),

    testCase('says that a topic is refused and stores the records of the others', async (harness, publisher) => {
      const topic = await harness.createTopic();
      const missing = `${topic}-missing`;
      const records = [
        record(missing, 'a', '1'),
        record(topic, 'a', '2'),
        record(missing, 'b', '3'),
        record(topic, 'b', '4'),
      ];
      const outcomes = await within(10_000, (deadline) => publisher.publish(records, deadline));
      deepEqual(
        outcomes.map(({ status }) => status),
        ['topic-refused', 'stored', 'topic-refused', 'stored'],
      );
      deepEqual(new Set(valuesOf(await harness.read(topic))), new Set(['2', '4']));
    }),

    testCase('sends nothing when its deadline has passed', async (harness, publisher) => {
      const topic = await harness.createTopic();
      const [outcome] = await publisher.publish([record(topic, 'a', '1')], AbortSignal.abort());
      equal(outcome?.status, 'retriable');
      deepEqual(await harness.read(topic), []);
    }),

    testCase('stores every record of many calls at once', async (harness, publisher) => {
      const topic = await harness.createTopic();
      const calls = numbers(200).map((at) =>
        within(30_000, (deadline) => publisher.publish([record(topic, at, at)], deadline)),
      );
      const outcomes = (await Promise.all(calls)).flat();
      deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['stored']));
      deepEqual(new Set(valuesOf(await harness.read(topic))), new Set(numbers(200)));
    }),

    testCase('survives a broker that is down at its start', async (harness, publisher) => {
      const topic = await harness.createTopic();
      harness.faults.down();
      const [outcome] = await within(2_000, (deadline) => publisher.publish([record(topic, 'a', '1')], deadline));
      equal(outcome?.status, 'retriable');
      harness.faults.resume();
      await publishUntilStored(publisher, [record(topic, 'a', '1')]);
      deepEqual(valuesOf(await harness.read(topic)), ['1']);
    }),

    testCase('survives a broker that goes down and comes back', async (harness, publisher) => {
      const topic = await harness.createTopic();
      await publishUntilStored(publisher, [record(topic, 'a', '1')]);
      harness.faults.down();
      const [outcome] = await within(2_000, (deadline) => publisher.publish([record(topic, 'a', '2')], deadline));
      ok(outcome?.status === 'retriable' || outcome?.status === 'unknown', outcome?.status);
      harness.faults.resume();
      await publishUntilStored(publisher, [record(topic, 'a', '2')]);
      deepEqual(new Set(valuesOf(await harness.read(topic))), new Set(['1', '2']));
    }),

    testCase(
      'calls a lost acknowledgement unknown, and loses nothing that is published after it',
      async (harness, publisher) => {
        const topic = await harness.createTopic();
        await publishUntilStored(publisher, [record(topic, 'a', '1')]);
        harness.faults.withholdReplies();
        const deadlineMs = 1_000;
        const took = await elapsedMs(async () => {
          const [outcome] = await within(deadlineMs, (deadline) =>
            publisher.publish([record(topic, 'a', '2')], deadline),
          );
          equal(outcome?.status, 'unknown');
        });
        ok(took < deadlineMs + 1_000, `took ${took} ms`);
        harness.faults.resume();
        for (const value of ['3', '4', '5']) await publishUntilStored(publisher, [record(topic, 'a', value)]);
        const stored = valuesOf(await harness.read(topic)).filter((value) => value !== '2');
        deepEqual(stored, ['1', '3', '4', '5']);
      },
    ),

    testCase('loses nothing behind a record that was stored while its send failed', async (harness, publisher) => {
      const topic = await harness.createTopic();
      await publishUntilStored(publisher, [record(topic, 'a', '1')]);
      harness.faults.withholdReplies();
      const publishing = within(10_000, (deadline) => publisher.publish([record(topic, 'a', '2')], deadline));
      await eventually('the record is stored', async () => (await harness.read(topic)).length === 2);
      harness.faults.down();
      equal((await publishing)[0]?.status, 'unknown');
      harness.faults.resume();
      // A client that takes its sequence numbers back has the broker drop the next record as a repetition, and acknowledge it.
      for (const value of ['3', '4']) await publishUntilStored(publisher, [record(topic, 'a', value)]);
      deepEqual(valuesOf(await harness.read(topic)), ['1', '2', '3', '4']);
    }),

    testCase('waits in its stop for what is in flight, and sends nothing afterwards', async (harness, publisher) => {
      const topic = await harness.createTopic();
      const publishing = within(10_000, (deadline) =>
        publisher.publish(
          numbers(50).map((at) => record(topic, at, at)),
          deadline,
        ),
      );
      await within(10_000, (deadline) => publisher.stop(deadline));
      const outcomes = await publishing;
      deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['stored']));
      const [late] = await within(1_000, (deadline) => publisher.publish([record(topic, 'late', 'late')], deadline));
      equal(late?.status, 'retriable');
      await within(1_000, (deadline) => publisher.stop(deadline));
      equal((await harness.read(topic)).length, 50);
    }),

    testCase('stops by its deadline when the broker hangs, and tells what is unknown', async (harness, publisher) => {
      const topic = await harness.createTopic();
      await publishUntilStored(publisher, [record(topic, 'a', '1')]);
      harness.faults.withholdReplies();
      const publishing = within(30_000, (deadline) => publisher.publish([record(topic, 'a', '2')], deadline));
      const deadlineMs = 500;
      const took = await elapsedMs(() => within(deadlineMs, (deadline) => publisher.stop(deadline)));
      ok(took < deadlineMs + 1_000, `took ${took} ms`);
      equal((await publishing)[0]?.status, 'unknown');
    }),

    testCase('can be stopped before its first record', async (_, publisher) => {
      await within(1_000, (deadline) => publisher.stop(deadline));
    }),
  ];
}

function testCase(
  name: string,
  run: (harness: BrokerHarness, publisher: Publisher) => Promise<void>,
): ConformanceCase<BrokerHarness> {
  return {
    name,
    run: async (harness) => {
      const publisher = harness.openPublisher();
      try {
        await run(harness, publisher);
      } finally {
        harness.faults.resume();
        await within(5_000, (deadline) => publisher.stop(deadline));
      }
    },
  };
}
