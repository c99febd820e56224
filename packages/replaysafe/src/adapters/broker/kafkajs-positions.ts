import { partitionId } from './kafkajs-lease.js';
import type { KafkajsAdmin } from './kafkajs-types.js';

export interface PartitionPositions {
  /** The group's next offset; undefined when it has none. */
  readonly committed: bigint | undefined;
  /** The oldest offset that is kept. */
  readonly low: bigint;
  /** Behind the newest offset. */
  readonly high: bigint;
}

export type StartDecision =
  | { readonly kind: 'begin'; readonly at: bigint; readonly committed: bigint | undefined }
  | { readonly kind: 'out-of-range'; readonly wanted: bigint };

/**
 * Where a partition starts (P17): where it stood, else at the group's offset, and where there is none at the start that was asked for.
 * An offset that the broker does not hold any more (retention, a truncated or recreated topic) never becomes another one by
 * itself: kafkajs would jump.
 */
export function decideStart(
  { committed, low, high }: PartitionPositions,
  start: 'earliest' | 'latest',
  position: bigint | undefined,
): StartDecision {
  const wanted = position ?? committed ?? (start === 'earliest' ? low : high);
  if (wanted < low || wanted > high) return { kind: 'out-of-range', wanted };
  return { kind: 'begin', at: wanted, committed };
}

/** Committed, oldest and newest offset of every partition of these topics, by {@link partitionId}. */
export async function readPositions(
  admin: KafkajsAdmin,
  groupId: string,
  topics: string[],
): Promise<ReadonlyMap<string, PartitionPositions>> {
  const committed = new Map<string, bigint>();
  for (const { topic, partitions } of await admin.fetchOffsets({ groupId, topics })) {
    for (const { partition, offset } of partitions) committed.set(partitionId(topic, partition), BigInt(offset));
  }
  const positions = new Map<string, PartitionPositions>();
  for (const topic of topics) {
    for (const { partition, low, high } of await admin.fetchTopicOffsets(topic)) {
      const id = partitionId(topic, partition);
      const offset = committed.get(id);
      // -1 is none; -2 is what kafkajs itself commits when it jumps.
      const known = offset !== undefined && offset >= 0n ? offset : undefined;
      positions.set(id, { committed: known, low: BigInt(low), high: BigInt(high) });
    }
  }
  return positions;
}
