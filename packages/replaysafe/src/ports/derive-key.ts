import { createHash } from 'node:crypto';
import { ReplaysafeError } from '../errors.js';

export type KeyPart = string | number | bigint;

/**
 * A key made of business ids alone, so that whoever repeats the operation, in whatever process, makes the same one. Each
 * part is length-prefixed and typed before hashing: `('a', 'bc')`, `('ab', 'c')` and `('1')`, `(1)` never meet.
 *
 * @returns 47 printable ASCII characters, `rs1-` and a SHA-256 in base64url; the prefix names the version of the recipe
 * @throws RS_CLIENT_KEY_INVALID for a part that is empty, undefined, null or not a finite number: a key made of `undefined` would
 * charge the first customer and nobody after
 */
export function deriveKey(...parts: readonly [KeyPart, ...KeyPart[]]): string {
  const hash = createHash('sha256');
  for (const [index, part] of parts.entries()) {
    const bytes = Buffer.from(tagged(part, index), 'utf8');
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return `rs1-${hash.digest('base64url')}`;
}

function tagged(part: unknown, index: number): string {
  if (typeof part === 'string' && part !== '') return `s${part}`;
  if (typeof part === 'bigint') return `n${part.toString()}`;
  if (typeof part === 'number' && Number.isFinite(part)) return `n${part.toString()}`;
  throw new ReplaysafeError('RS_CLIENT_KEY_INVALID', { detail: `part ${index} is ${describe(part)}` });
}

function describe(part: unknown): string {
  if (part === '') return 'an empty string';
  if (part === null) return 'null';
  return typeof part === 'number' ? String(part) : `of type ${typeof part}`;
}
