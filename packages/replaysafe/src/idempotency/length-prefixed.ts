import type { Hash } from 'node:crypto';

/** Feeds fields so that no two lists of fields give the same bytes: each is preceded by its length. */
export function lengthPrefixed(hash: Hash, fields: readonly (string | Uint8Array)[]): Hash {
  for (const field of fields) {
    const bytes = typeof field === 'string' ? Buffer.from(field, 'utf8') : field;
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.byteLength);
    hash.update(length).update(bytes);
  }
  return hash;
}
