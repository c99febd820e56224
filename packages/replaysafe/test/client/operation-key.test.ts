import { expect, test } from 'vitest';
import { operationKey } from '../../src/client/index.js';
import { deriveKey, type KeyPart } from '../../src/ports/derive-key.js';

test('the key of an operation is pinned: another version of the library must make the same one', () => {
  expect(operationKey('charge', 'order-1', 42)).toBe('rs1-vqZEAAQ80kleduG6qWyJbO35e7ZnTbPKgbJrhq_mPvE');
});

test('keys are 1 to 255 printable ASCII characters', () => {
  expect(operationKey('charge', '\u0000ü'.repeat(10_000))).toMatch(/^[\x21-\x7e]{1,255}$/);
});

test('parts never run into one another, and a number is not its digits', () => {
  const keys = [
    deriveKey('a', 'bc'),
    deriveKey('ab', 'c'),
    deriveKey('abc'),
    deriveKey('a', 'b', 'c'),
    deriveKey('1'),
    deriveKey(1),
    deriveKey('s1'),
    deriveKey('n1'),
  ];
  expect(new Set(keys).size).toBe(keys.length);
});

test.each([
  ['', 'an empty string'],
  [undefined, 'undefined'],
  [null, 'null'],
  [Number.NaN, 'NaN'],
  [Infinity, 'Infinity'],
  [{}, 'object'],
])('the part %s is refused', (part, shown) => {
  expect(() => operationKey('charge', part as KeyPart)).toThrow(
    expect.objectContaining({ code: 'RS_CLIENT_KEY_INVALID', message: expect.stringContaining(shown) as string }),
  );
});
