import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../src/idempotency/canonical-json.js';
import { fingerprint } from '../../src/idempotency/fingerprint.js';
import type { HttpRequest } from '../../src/idempotency/index.js';
import { seeded, type Seeded } from './seeded.js';

/** The length-prefixed fields 1, POST, /orders, request, 2, a=1, b=2, application/json, json, {"a":"é","b":1}. */
const BY_PYTHON = 'f9994189d314e11a57636b67c45cbee012ef04166be502f55bca25d79378a54a';

const request = (more: Partial<Omit<HttpRequest, 'body'>> & { body?: string | Uint8Array } = {}): HttpRequest => {
  const { body = '', ...rest } = more;
  const headers = { 'content-type': 'application/json' };
  return { method: 'POST', path: '/orders', query: '', headers, ...rest, body: Buffer.from(body as string) };
};
const print = (more?: Parameters<typeof request>[0]): string => fingerprint(request(more)).toString('hex');

describe('canonical JSON', () => {
  test.each([
    ['{"b":1,"a":[true,false,null]}', '{"a":[true,false,null],"b":1}'],
    [' { "a" : 1.50 , "b" : 1E2 } ', '{"a":1.5,"b":100}'],
    ['[1e21,1e-7,0.1,0.0,123456789012345680000]', '[1e+21,1e-7,0.1,0,123456789012345680000]'],
    [String.raw`"\u0041\/\n\u00e9\u001f\ud83d\ude00"`, String.raw`"A/\né\u001f😀"`],
    ['{"\u20ac":1,"\\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}', undefined],
    ['{"__proto__":1,"constructor":2}', '{"__proto__":1,"constructor":2}'],
    ['""', '""'],
  ])('%s', (text, canonical) => {
    const expected = canonical ?? '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}';
    expect(canonicalJson(text)).toBe(expected);
  });

  test.each([
    ['a name twice', ['{"a":1,"a":1}', String.raw`{"a":1,"\u0061":1}`, '[{"a":{"b":1,"b":2}}]']],
    ['a number that no double holds', ['9007199254740993', '[0.10000000000000001]', '1e400', '1e-400', '-0', '-0.0']],
    ['a lone surrogate', [String.raw`"\ud800"`, String.raw`{"\udc00":1}`, String.raw`"\ude00\ud83d"`]],
    ['too deep', [`${'['.repeat(100_000)}1`, '['.repeat(300) + ']'.repeat(300)]],
    [
      'no JSON',
      [
        '',
        ' ',
        '{',
        '[1,]',
        '{"a":1,}',
        '{a:1}',
        "'a'",
        '01',
        '1.',
        '.5',
        '+1',
        'NaN',
        'tru',
        '"\n"',
        '"\\x"',
        '1 2',
        '\ufeff1',
      ],
    ],
    ['no JSON, at length', ['"', '"\\', '"\\u12', '{"a"', '{"a":', '[1', '-', '1e', '\u00a01']],
  ])('%s has no canonical form: it would lose something', (_, texts) => {
    for (const text of texts) expect(canonicalJson(text), text.slice(0, 40)).toBeUndefined();
  });

  test('a megabyte of digits, of zeros inside digits, and of escapes takes no time worth mentioning', () => {
    const started = performance.now();
    for (const text of ['1'.repeat(1e6), `1${'0'.repeat(1e6)}1`, `0.${'0'.repeat(1e6)}1`, `"${'\\n'.repeat(5e5)}"`]) {
      canonicalJson(text);
    }
    expect(performance.now() - started).toBeLessThan(2_000);
  });

  test('fuzz: a value has one form, however it is written; the form holds the value', () => {
    const random = seeded(8_785);
    for (let round = 0; round < 3_000; round++) {
      const value = randomValue(random, 4);
      const canonical = canonicalJson(write(random, value));
      expect(canonical).toBe(canonicalJson(write(random, value)));
      expect(JSON.parse(canonical!)).toEqual(value);
      expect(canonicalJson(canonical!)).toBe(canonical);
    }
  });

  test('fuzz: damaged JSON is refused exactly when JSON.parse refuses it, or when something would be lost', () => {
    const random = seeded(7_493);
    const junk = '{}[]",:\\0123456789.eE+-tfnul \n\t\u00e9\ud800\0'.split('');
    for (let round = 0; round < 10_000; round++) {
      const text = write(random, randomValue(random, 3)).split('');
      for (let i = random.below(3); i >= 0; i--)
        text.splice(random.below(text.length + 1), random.below(3), random.pick(junk));
      const damaged = text.join('');
      const canonical = canonicalJson(damaged);
      if (canonical !== undefined) expect(JSON.parse(canonical)).toEqual(JSON.parse(damaged));
    }
  });
});

describe('the fingerprint of a request', () => {
  test('the same request, written differently', () => {
    const body = '{"amount":1990,"to":"a"}';
    for (const same of [
      { body: '{ "to": "a", "amount": 1.99e3 }' },
      { body, headers: { 'content-type': 'Application/JSON; charset=utf-8', host: 'other', cookie: 'a=1' } },
      { body, method: 'post' },
    ]) {
      expect(print(same)).toBe(print({ body }));
    }
    expect(print({ query: 'b=2&a=1&b=1' })).toBe(print({ query: 'a=1&b=2&b=1' }));
  });

  test('requests that differ', () => {
    const json = { 'content-type': 'application/json' };
    const all: Parameters<typeof request>[0][] = [
      {},
      { method: 'PATCH' },
      { path: '/orders/' },
      { path: '/order', query: 's' },
      { query: 'a=1&b=2' },
      { query: 'b=1&a=2' },
      { query: 'a=1&a=2' },
      { query: 'a=2&a=1' },
      { query: 'a=1%262' },
      { query: 'a=1' },
      { body: '{}' },
      { body: '{}', headers: { 'content-type': 'application/problem+json' } },
      { body: '{}', headers: {} },
      { body: '{}', headers: { ...json, 'content-encoding': 'gzip' } },
      { body: '{"a":9007199254740992}' },
      { body: '{"a":9007199254740993}' },
      { body: '{"a":-0}' },
      { body: '{"a":0}' },
      { body: '{"a":1,"a":2}' },
      { body: '{"a":2}' },
      { body: ' {"a":1,"a":2}' },
      { body: 'not json' },
      { body: Buffer.from([0xff, 0x31]) },
      { body: Buffer.from([0xfe, 0x31]) },
      { body: '[1]' },
      { body: '["1"]' },
    ];
    const prints = all.map((each) => print(each));
    expect(new Set(prints).size).toBe(all.length);
  });

  test('multipart and other types count by their bytes', () => {
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    expect(print({ headers, body: '--x 1' })).not.toBe(print({ headers, body: '--x  1' }));
    expect(print({ headers, body: '--x 1' })).toBe(print({ headers, body: '--x 1' }));
  });

  test('a custom fingerprint stands for query, type and body, not for method and path', () => {
    const custom = ({ body }: HttpRequest): string => Buffer.from(body).toString().slice(0, 1);
    const with_ = (more: Parameters<typeof request>[0]) => fingerprint(request(more), custom).toString('hex');
    expect(with_({ body: 'ab', query: 'x=1' })).toBe(with_({ body: 'ac', headers: {} }));
    expect(with_({ body: 'ab' })).not.toBe(with_({ body: 'bb' }));
    expect(with_({ body: 'ab' })).not.toBe(with_({ body: 'ab', path: '/other' }));
    expect(with_({ body: '' })).not.toBe(print());
  });

  test('version 1 stays what it is: records outlive a release', () => {
    expect(print({ query: 'b=2&a=1', body: '{"b":1,"a":"é"}' })).toBe(BY_PYTHON);
  });
});

function randomValue(random: Seeded, depth: number): unknown {
  const kind = random.below(depth === 0 ? 5 : 7);
  if (kind === 0) return null;
  if (kind === 1) return random.below(2) === 0;
  if (kind === 2) return random.below(2_000_000) - 1_000_000;
  if (kind === 3) return (random.next() - 0.5) * 10 ** (random.below(40) - 20);
  if (kind === 4) return randomText(random);
  if (kind === 5) return Array.from({ length: random.below(4) }, () => randomValue(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [randomText(random), randomValue(random, depth - 1)]),
  );
}

const randomText = (random: Seeded): string =>
  Array.from({ length: random.below(5) }, () =>
    random.pick(['a', 'B', '"', '\\', '/', '\n', 'é', '€', '😀', '\u0001']),
  ).join('');

function writeUnit(random: Seeded, unit: string): string {
  if (random.below(4) === 0) return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return unit === '"' || unit === '\\' || unit < ' ' ? JSON.stringify(unit).slice(1, -1) : unit;
}

/** One of the many ways to write a value. */
function write(random: Seeded, value: unknown): string {
  const space = (): string => random.pick(['', '', ' ', '\n\t']);
  if (typeof value === 'string') {
    return `"${value
      .split('')
      .map((unit) => writeUnit(random, unit))
      .join('')}"`;
  }
  if (typeof value === 'number') return random.below(2) === 0 ? String(value) : value.toExponential();
  if (Array.isArray(value)) return `[${value.map((each) => space() + write(random, each) + space()).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const members = random
      .shuffle(Object.entries(value))
      .map(([name, each]) => `${space()}${write(random, name)}${space()}:${write(random, each)}`);
    return `{${members.join(',')}${space()}}`;
  }
  return JSON.stringify(value);
}
