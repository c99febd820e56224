import { expect, test } from 'vitest';
import { ReplaysafeError } from '../../src/errors.js';
import { settleFailure, TASK_STATES, TRANSITIONS, type RetryPolicy } from '../../src/tasks/states.js';

const POLICY: RetryPolicy = { baseMs: 100, capMs: 1_000, random: { next: () => 0.999_999 } };
const settle = (failures: number, error: unknown, interrupted = false) =>
  settleFailure({ failures, maxFailures: 3 }, error, interrupted, POLICY);

test('a failure waits, twice as long after each, up to the cap, and the last one is given up on', () => {
  expect(settle(0, new Error('x'))).toEqual({ kind: 'failed', error: 'x', delayMs: 100 });
  expect(settle(1, new Error('x'))).toEqual({ kind: 'failed', error: 'x', delayMs: 200 });
  expect(settle(2, new Error('x'))).toEqual({ kind: 'given-up', error: 'x', reason: 'max-failures' });
});

test('an error that will not become better is given up on at once, one that says nothing of it is not', () => {
  const refused = new ReplaysafeError('RS_CLIENT_ANSWER_REFUSED', { detail: 'status 422' });
  expect(settle(0, refused)).toMatchObject({ kind: 'given-up', reason: 'not-retryable' });
  expect(settle(0, new ReplaysafeError('RS_CLIENT_OUTCOME_UNKNOWN')).kind).toBe('failed');
  expect(settle(0, new TypeError('a bug')).kind).toBe('failed');
});

test('a call that was stopped or given up with its process says nothing about the operation', () => {
  expect(settle(0, new ReplaysafeError('RS_CLIENT_STOPPED')).kind).toBe('failed');
  expect(settle(0, new ReplaysafeError('RS_CLIENT_ABORTED')).kind).toBe('failed');
});

test('a try that the stop interrupted goes back as it was, even the last one', () => {
  expect(settle(2, new Error('x'), true)).toEqual({ kind: 'released' });
});

test.each([
  [undefined, 'threw undefined: undefined'],
  ['text', 'threw string: text'],
  [new Error(''), 'Error'],
  [Object.assign(new Error('gone'), { code: 'ECONNRESET' }), 'ECONNRESET: gone'],
  [new Error('a\0b'), 'a\uFFFDb'],
])('what was thrown is written down: %s', (thrown, text) => {
  expect(settle(0, thrown)).toMatchObject({ error: text });
});

test.each([
  ['without a prototype', Object.create(null)],
  ['whose text throws', { toString: () => [] }],
  ['whose message cannot be a text', Object.assign(new Error('x'), { message: Symbol('x') })],
  [
    'whose getter throws',
    Object.defineProperty(new Error('x'), 'code', {
      get: () => {
        throw new Error('a trap');
      },
    }),
  ],
])('something thrown %s is a failure like any other', (_what, thrown: unknown) => {
  expect(settle(0, thrown)).toEqual({ kind: 'failed', error: 'threw something that cannot be read', delayMs: 100 });
});

test('every state but the first is reached, and what has ended is left by people only', () => {
  const reached = new Set<string>(TRANSITIONS.map(({ to }) => to));
  expect(TASK_STATES.filter((state) => !reached.has(state))).toEqual([]);
  const left = TRANSITIONS.filter(({ from }) => !['PENDING', 'RUNNING'].includes(from));
  expect(left).toEqual([{ from: 'FAILED', to: 'PENDING', by: 'redrive' }]);
});
