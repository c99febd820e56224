import { describe, expect, test } from 'vitest';
import { hashKey, lockId, parseKey } from '../../src/idempotency/key.js';
import { seeded } from './seeded.js';

/** `import hashlib, struct`: sha256 over struct.pack('>I', len(f)) + f of 'replaysafe idempotency key 1', 'tenant', 'key'. */
const BY_PYTHON = 'f3776100ecf4feb604ca5f547746e6aba30bcc2df02d6f58a84d4df911eed634';

describe('the key in the header', () => {
  test.each([
    ['abc', 'abc'],
    ['"abc"', 'abc'],
    ['  abc\t', 'abc'],
    ['"a b, c"', 'a b, c'],
    [String.raw`"a\"b\\c"`, String.raw`a"b\c`],
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['a;b=1', 'a;b=1'],
    ['k'.repeat(255), 'k'.repeat(255)],
    [`"${String.raw`\\`.repeat(255)}"`, '\\'.repeat(255)],
  ])('a header that names a key: %#', (header, key) => {
    expect(parseKey(header)).toBe(key);
  });

  test.each([
    ['', ' ', '""', '"', '"a', 'a"', 'a"b', 'a b', 'a,b', 'a, b', '"a", "b"', '"a","a"', '"a";p', '"a" ;p=1'],
    [String.raw`a\b`, String.raw`"a\b"`, String.raw`"a\"`, 'a\tb', '"a\tb"', 'ä', '"ä"', 'a\0', '"a\x7f"', '\u00a0a'],
    ['k'.repeat(256), `"${'k'.repeat(256)}"`, ' '.repeat(100_000), `a${' '.repeat(100_000)}b`],
  ])('what is not exactly one key is none: %#', (...headers) => {
    for (const header of headers) expect(parseKey(header), JSON.stringify(header)).toBeUndefined();
  });

  test('fuzz: any key survives quoting, whatever else arrives is refused or printable, and nothing throws', () => {
    const random = seeded(20_261);
    const alphabet = [
      ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
      '"',
      '\\',
      ',',
      'é',
      '😀',
    ];
    for (let round = 0; round < 20_000; round++) {
      const text = Array.from({ length: random.below(12) }, () => random.pick(alphabet)).join('');
      const key = parseKey(text);
      if (key !== undefined) expect(key).toMatch(/^[\x20-\x7e]{1,255}$/);
      const printable = text.replace(/[^\x20-\x7e]/g, '');
      const quoted = `"${printable.replace(/["\\]/g, '\\$&')}"`;
      expect(parseKey(quoted)).toBe(printable === '' ? undefined : printable);
    }
  });
});

describe('what stands for a key', () => {
  test('scope and key are told apart, whatever they hold', () => {
    const hashes = [
      hashKey('a', 'bc'),
      hashKey('ab', 'c'),
      hashKey('', 'abc'),
      hashKey('abc', ''),
      hashKey('a', 'b'),
      hashKey('b', 'a'),
    ].map((hash) => hash.toString('hex'));
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test('the recipe stays what it is: records outlive a release', () => {
    expect(hashKey('tenant', 'key').toString('hex')).toBe(BY_PYTHON);
  });

  test('the lock of a key is a bigint as PostgreSQL counts', () => {
    for (let i = 0; i < 100; i++) {
      const id = BigInt(lockId(hashKey('scope', String(i))));
      expect(id >= -(2n ** 63n) && id < 2n ** 63n).toBe(true);
    }
  });
});
