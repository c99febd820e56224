import { ReplaysafeError } from '../errors.js';
import { deriveKey, type KeyPart } from '../ports/derive-key.js';

export const KEY_HEADER = 'idempotency-key';

// Servers read quotes, commas and backslashes as syntax of the header.
const SENDABLE_KEY = /^[\x21\x23-\x2b\x2d-\x5b\x5d-\x7e]{1,255}$/;

/**
 * The idempotency key of one business operation: the same for every try, in every process, because it is made of business ids
 * alone. `namespace` names the operation, e.g. `charge`.
 *
 * @throws RS_CLIENT_KEY_INVALID for an empty, undefined, null or not finite part
 */
export function operationKey(namespace: string, ...parts: readonly [KeyPart, ...KeyPart[]]): string {
  return deriveKey('operation', namespace, ...parts);
}

/** Checks a key that the caller hands over; it is sent as it is, on every try. */
export function checkedKey(key: string): string {
  if (typeof key !== 'string' || !SENDABLE_KEY.test(key)) {
    throw new ReplaysafeError('RS_CLIENT_KEY_INVALID', {
      detail: 'it must be 1 to 255 printable ASCII characters, none of them a blank, quote, comma or backslash',
    });
  }
  return key;
}
