import { createHash } from 'node:crypto';
import { lengthPrefixed } from './length-prefixed.js';

export const KEY_HEADER = 'idempotency-key';

const LONGEST_KEY = 255;
/** A quoted key of which each character is escaped, and some space around it. */
const LONGEST_HEADER = 600;
/** Printable ASCII without space, quote, backslash and comma. */
const BARE = /^[\x21\x23-\x2B\x2D-\x5B\x5D-\x7E]+$/;
/** An RFC 8941 String: printable ASCII, where only quote and backslash are escaped, and always. */
const QUOTED = /^"((?:[\x20\x21\x23-\x5B\x5D-\x7E]|\\["\\])*)"$/;

/**
 * The key in the header's value, or nothing when it is not exactly one key. `"abc"` and `abc` name the same key.
 *
 * Node joins a header that was sent twice with a comma, so a comma outside quotes means two keys. A String with parameters is
 * refused: a sender that means something by them would find them ignored.
 */
export function parseKey(header: string): string | undefined {
  if (header.length > LONGEST_HEADER) return undefined;
  const value = header.replace(/^[ \t]+|[ \t]+$/g, '');
  const quoted = QUOTED.exec(value)?.[1];
  const key = quoted === undefined ? BARE.exec(value)?.[0] : quoted.replace(/\\(["\\])/g, '$1');
  return key !== undefined && key.length >= 1 && key.length <= LONGEST_KEY ? key : undefined;
}

/** SHA-256 of scope and key: what the record is found by, and all that logs and events show of a key. */
export function hashKey(scope: string, key: string): Buffer {
  return lengthPrefixed(createHash('sha256'), ['replaysafe idempotency key 1', scope, key]).digest();
}

/**
 * Which advisory lock stands for a key: 64 bits of its hash, signed, as the server counts. A collision, with another key or
 * with a lock of the application, costs a wait and never an effect.
 */
export function lockId(keyHash: Buffer): string {
  return keyHash.readBigInt64BE(0).toString();
}
