import { describe, expect, test } from 'vitest';
import { hasCode, type ErrorCode } from '../src/errors.js';
import {
  boolean,
  callback,
  custom,
  integer,
  oneOf,
  optional,
  parseOptions,
  port,
  schemaName,
  text,
  type OptionReader,
} from '../src/options.js';
import { poolHint, type SqlPort } from '../src/ports/sql.js';

/** The error that reading throws. */
function refusal(work: () => unknown, code: ErrorCode): string {
  try {
    work();
  } catch (error) {
    if (hasCode(error, code)) return error.message;
    throw error;
  }
  throw new Error(`${code} was not thrown`);
}

const read = (option: OptionReader<unknown>, given: unknown): unknown =>
  parseOptions('door', { option }, given === undefined ? {} : { option: given }).option;
const invalid = (option: OptionReader<unknown>, given: unknown): string =>
  refusal(() => read(option, given), 'RS_OPTION_INVALID');

const table = { batchSize: integer({ default: 200, min: 1 }), leaseMs: integer({ default: 30_000 }), name: text() };

test('fills in defaults, and the result cannot be changed', () => {
  const parsed = parseOptions('createRelay', table, { name: 'r' });
  expect(parsed).toEqual({ batchSize: 200, leaseMs: 30_000, name: 'r' });
  expect(Object.isFrozen(parsed)).toBe(true);
});

test('undefined is the same as not given', () => {
  expect(parseOptions('createRelay', table, { name: 'r', leaseMs: undefined }).leaseMs).toBe(30_000);
  expect(parseOptions('door', { schema: schemaName() }, undefined)).toEqual({ schema: 'replaysafe' });
});

describe('a name that does not exist', () => {
  test.each([
    ['batchsize', 'did you mean "batchSize"?'],
    ['leaseMS', 'did you mean "leaseMs"?'],
    ['batch', 'known options: batchSize, leaseMs, name'],
    ['somethingElse', 'known options: batchSize, leaseMs, name'],
    ['toString', 'known options: batchSize, leaseMs, name'],
  ])('%s is refused: %s', (name, hint) => {
    const message = refusal(() => parseOptions('createRelay', table, { name: 'r', [name]: 1 }), 'RS_OPTION_UNKNOWN');
    expect(message).toContain(`createRelay: "${name}"; ${hint}`);
  });

  test('is refused even when its value is undefined, and before anything else is looked at', () => {
    refusal(() => parseOptions('createRelay', table, { nome: undefined }), 'RS_OPTION_UNKNOWN');
  });
});

test('a required option that is missing is named with its door', () => {
  expect(refusal(() => parseOptions('createRelay', table, {}), 'RS_OPTION_REQUIRED')).toContain(
    'createRelay: name is required',
  );
});

test('whole numbers have bounds, and stay below what a timer can wait', () => {
  const option = integer({ default: 5, min: 1, max: 10 });
  expect([read(option, undefined), read(option, 1), read(option, 10)]).toEqual([5, 1, 10]);
  for (const given of [0, 11, 1.5, NaN, Infinity, '5', null]) invalid(option, given);
  expect(invalid(option, 11)).toContain('must be a whole number from 1 to 10, not 11');
  expect(invalid(option, '3')).toContain('not "3"');
  invalid(integer({ default: 0 }), 2 ** 31);
  invalid(integer({ default: 0 }), -1);
});

test('the other readers take what they say and nothing else', () => {
  expect(read(boolean(true), false)).toBe(false);
  invalid(boolean(true), 'false');
  invalid(text(), '');
  expect(invalid(schemaName(), 'Robert"; drop')).toContain('must match');
  expect(read(oneOf(['a', 'b'], 'a'), 'b')).toBe('b');
  expect(invalid(oneOf(['a', 'b'], 'a'), 'c')).toContain('must be one of a, b');
  const fn = (): void => undefined;
  expect(read(callback(), fn)).toBe(fn);
  invalid(callback(), 'fn');
  expect(read(optional(text()), undefined)).toBeUndefined();
  const even = custom<number>((given) => (Number(given) % 2 === 0 ? undefined : 'must be even'), 2);
  expect([read(even, undefined), read(even, 4)]).toEqual([2, 4]);
  expect(invalid(even, 3)).toContain('must be even');
});

test('a port is asked for the methods that will be called', () => {
  interface Logger {
    info(): void;
    warn(): void;
  }
  const option = port<Logger>(['info', 'warn']);
  const logger = { info: () => undefined, warn: () => undefined };
  expect(read(option, logger)).toBe(logger);
  expect(invalid(option, { info: logger.info })).toContain('must be an object with warn()');
  invalid(option, null);
});

test('a port may say what to do about what it was given instead', () => {
  const option = port<SqlPort>(['query', 'transaction'], undefined, poolHint);
  const pool = { connect: () => undefined, query: () => undefined };
  expect(invalid(option, pool)).toContain('must be an object with transaction() (wrap the pool: fromPg(pool)), not an');
  expect(invalid(option, { query: pool.query })).not.toContain('fromPg');
  for (const given of [null, 'pool', []]) invalid(option, given);
});

test('a refusal never shows what an object holds', () => {
  expect(invalid(integer({ default: 1 }), { password: 'hunter2' })).not.toContain('hunter2');
});
