import { describe, expect, it } from 'vitest';
import { describeFailure, outcomeOf } from '../../../src/adapters/broker/kafkajs-failure.js';
import { PartitionLease } from '../../../src/adapters/broker/kafkajs-lease.js';
import { createJavaPartitioner, murmur2 } from '../../../src/adapters/broker/kafkajs-partitioner.js';
import { decideStart } from '../../../src/adapters/broker/kafkajs-positions.js';
import { kafkajsPublisher, kafkajsSubscriber, type KafkajsClient } from '../../../src/adapters/broker/kafkajs.js';
import { systemClock } from '../../../src/ports/clock.js';

describe('the partitioner', () => {
  it.each([
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ])('hashes %s as the Java client does', (key, hash) => {
    expect(murmur2(Buffer.from(key))).toBe(hash);
  });

  it('lets records without a key take turns over partitions that have a leader', () => {
    const choose = createJavaPartitioner();
    const partitionMetadata = [0, 1, 2].map((partitionId) => ({ partitionId, leader: partitionId === 1 ? -1 : 5 }));
    const chosen = Array.from({ length: 4 }, () =>
      choose({ topic: 't', partitionMetadata, message: { key: null, value: null } }),
    );
    expect(new Set(chosen)).toEqual(new Set([0, 2]));
  });
});

describe('the outcome of a failed send', () => {
  const wrapped = (type: string): Error =>
    Object.assign(new Error('retries exceeded'), { cause: Object.assign(new Error('answer'), { type }) });

  it('is unknown unless nothing can have been sent', () => {
    const failure = describeFailure(wrapped('NOT_LEADER_FOR_PARTITION'));
    expect(outcomeOf(failure, false).status).toBe('unknown');
    expect(outcomeOf(failure, true).status).toBe('retriable');
  });

  it('says that the topic is refused', () => {
    expect(outcomeOf(describeFailure(wrapped('TOPIC_AUTHORIZATION_FAILED')), false).status).toBe('topic-refused');
  });
});

describe('a lease', () => {
  const open = (committed?: bigint) => {
    const lease = new PartitionLease('t', 0, { clock: systemClock, commitTimeoutMs: 50 });
    lease.begin(committed ?? 0n, committed);
    const written: bigint[] = [];
    const write = async (offset: bigint): Promise<void> => void written.push(offset);
    return { lease, written, write };
  };

  it('never writes an offset that is smaller than one that is committed', async () => {
    const { lease, written, write } = open(5n);
    expect(await lease.commit(3n, write)).toBe('committed');
    expect(await lease.commit(9n, write)).toBe('committed');
    expect(await lease.commit(7n, write)).toBe('committed');
    expect(written).toEqual([9n]);
  });

  it('never writes a smaller offset behind one whose answer is missing', async () => {
    const { lease, written, write } = open();
    expect(await lease.commit(9n, () => new Promise(() => undefined))).toBe('retriable');
    expect(await lease.commit(7n, write)).toBe('retriable');
    expect(await lease.commit(9n, write)).toBe('committed');
    expect(written).toEqual([9n]);
  });

  it('is fenced without asking when the partition is lost, and lost when the broker fences it', async () => {
    const { lease, written, write } = open();
    const fenced = async (): Promise<void> => {
      throw Object.assign(new Error('gone'), { type: 'ILLEGAL_GENERATION' });
    };
    expect(await lease.commit(1n, fenced)).toBe('fenced');
    expect(lease.lost.aborted).toBe(true);
    expect(await lease.commit(2n, write)).toBe('fenced');
    expect(written).toEqual([]);
  });
});

describe('the start of a partition (P17)', () => {
  it('is the earliest offset for a new group, and the latest when that is asked for', () => {
    const positions = { committed: undefined, low: 3n, high: 9n };
    expect(decideStart(positions, 'earliest', undefined)).toMatchObject({ kind: 'begin', at: 3n });
    expect(decideStart(positions, 'latest', undefined)).toMatchObject({ kind: 'begin', at: 9n });
  });

  it.each([2n, 10n])('never leaves an offset that is out of range for another one (%s)', (committed) => {
    expect(decideStart({ committed, low: 3n, high: 9n }, 'earliest', undefined)).toEqual({
      kind: 'out-of-range',
      wanted: committed,
    });
  });
});

describe('unsafe settings', () => {
  const kafka: KafkajsClient = { producer: never, consumer: never, admin: never };
  it('are refused at the door', () => {
    expect(() => kafkajsPublisher({ kafka, acks: 1 as -1 })).toThrow(/RS|acks/);
    expect(() => kafkajsSubscriber({ kafka, autoCommit: true as unknown as false })).toThrow(/autoCommit/);
    expect(() => kafkajsSubscriber({ kafka, sessionTimeoutMs: 500, heartbeatMs: 500 })).toThrow(/heartbeatMs/);
    expect(() => kafkajsSubscriber({ kafka: {} as KafkajsClient })).toThrow(/Kafka instance/);
  });
});

function never(): never {
  throw new Error('not to be called');
}
