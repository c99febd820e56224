import { describe, expect, test } from 'vitest';
import { environment } from '../../src/service/environment.js';
import { guardsOff } from '../../src/service/guards.js';

describe('the environment of a service', () => {
  const env = environment({
    PORT: '3001',
    EMPTY: '',
    RELAY_MODE: 'two-phase',
    BAD: 'x',
    SECRET: 'postgresql://u:secret@h',
  });

  test('gives values, and defaults for what is absent or empty', () => {
    expect(env.whole('PORT', 1)).toBe(3001);
    expect(env.whole('EMPTY', 7)).toBe(7);
    expect(env.text('ABSENT', 'fallback')).toBe('fallback');
    expect(env.optional('EMPTY')).toBeUndefined();
    expect(env.oneOf('RELAY_MODE', ['single-phase', 'two-phase'], 'single-phase')).toBe('two-phase');
  });

  test('names the variable that is wrong, and does not show what it holds', () => {
    expect(() => env.text('ABSENT')).toThrow('ABSENT must be set');
    expect(() => env.whole('BAD', 1)).toThrow('BAD must be a whole number');
    expect(() => env.oneOf('BAD', ['a', 'b'], 'a')).toThrow('BAD must be one of a, b');
    expect(() => env.whole('SECRET', 1)).not.toThrow('secret');
  });
});

describe('the guards that are off', () => {
  test('are none by default', () => {
    expect(guardsOff(undefined).size).toBe(0);
    expect(guardsOff('').size).toBe(0);
  });

  test('are those that are named, and a name that is wrong is not ignored', () => {
    expect([...guardsOff('no-outbox,offset-first')]).toEqual(['no-outbox', 'offset-first']);
    expect(() => guardsOff('no-outbox,all')).toThrow('no guard is called "all"');
  });
});
