import { describe, expect, test } from 'vitest';
import { parseDemoOptions } from '../../src/demo/options.js';

const parse = (...args: string[]) => parseDemoOptions(args, () => 99);

describe('the options of the demo', () => {
  test('have defaults', () => {
    expect(parse()).toEqual({ seconds: 45, seed: 99, json: false, unsafe: undefined });
  });

  test('are all read', () => {
    expect(parse('--seconds', '10', '--seed=3', '--json', '--unsafe=no-outbox')).toEqual({
      seconds: 10,
      seed: 3,
      json: true,
      unsafe: 'no-outbox',
    });
  });

  test('let a run without a guard end within 30 seconds', () => {
    expect(parse('--unsafe=offset-first')).toMatchObject({ seconds: 14 });
  });

  test.each([
    [['--seconds', '0'], '--seconds must be a whole number from 1 to 86400'],
    [['--seconds', ''], '--seconds must be a whole number'],
    [['--seed', '1.5'], '--seed must be a whole number'],
    [['--unsafe=everything'], '--unsafe must be one of key-per-try, no-dedup-row'],
    [['--sede', '1'], "Unknown option '--sede'"],
  ])('are refused with a reason: %j', (args, message) => {
    expect(() => parse(...args)).toThrow(message);
  });
});
