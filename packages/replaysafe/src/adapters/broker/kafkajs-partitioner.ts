import type { KafkajsPartitioner } from './kafkajs-types.js';

/**
 * The partitioner of Kafka's Java client: murmur2 of the key, so that producers in all languages put a key into the same
 * partition. Records without a key take turns over the partitions that have a leader. (kafkajs ships the same, but warns on
 * the console when none is handed to it.)
 */
export function createJavaPartitioner(): KafkajsPartitioner {
  let turn = 0;
  return ({ partitionMetadata, message }) => {
    if (message.partition !== undefined) return message.partition;
    if (message.key !== undefined && message.key !== null) {
      const key = typeof message.key === 'string' ? Buffer.from(message.key) : message.key;
      return (murmur2(key) & 0x7fffffff) % partitionMetadata.length;
    }
    const reachable = partitionMetadata.filter(({ leader }) => leader >= 0);
    const candidates = reachable.length > 0 ? reachable : partitionMetadata;
    turn = (turn + 1) % candidates.length;
    return candidates[turn]?.partitionId ?? 0;
  };
}

const SEED = 0x9747b28c;
const MIX = 0x5bd1e995;

/** MurmurHash2, 32 bits, with the seed that Kafka uses; as a signed number. */
export function murmur2(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = bytes.length - (bytes.length % 4);
  let hash = SEED ^ bytes.length;
  for (let at = 0; at < whole; at += 4) {
    let word = Math.imul(view.getInt32(at, true), MIX);
    word = Math.imul(word ^ (word >>> 24), MIX);
    hash = Math.imul(hash, MIX) ^ word;
  }
  const rest = bytes.subarray(whole);
  if (rest.length > 0) {
    for (const [index, byte] of rest.entries()) hash ^= byte << (8 * index);
    hash = Math.imul(hash, MIX);
  }
  hash = Math.imul(hash ^ (hash >>> 13), MIX);
  return hash ^ (hash >>> 15);
}
