import { expect, test } from 'vitest';
import { ReplaysafeError } from '../../src/errors.js';
import { classify, isRetryable, type Evidence } from '../../src/inbox/classify.js';
import { afterAttempt, afterFailure, type RunFailure } from '../../src/inbox/states.js';

const server = (code: string, message = 'x') => Object.assign(new Error(message), { code, severity: 'ERROR' });
const judge = async (evidence: Partial<Evidence>, answers = true) =>
  (
    await classify(
      { error: new Error('x'), where: 'inside', culprit: 3, transactionFailure: undefined, ...evidence },
      () => Promise.resolve(answers),
    )
  ).kind;

test.each(['08006', '53300', '57P01', '57P03', '58030', '25006', '25P03'])(
  '%s is the server’s, wherever it comes up',
  async (code) => {
    expect(await judge({ error: server(code) })).toBe('infrastructure');
    expect(await judge({ error: new Error('wrapped', { cause: server(code) }) })).toBe('infrastructure');
    expect(await judge({ transactionFailure: server(code) })).toBe('infrastructure');
  },
);

test.each(['40001', '40P01', '55P03', '57014'])('%s is contention in a handler, nobody’s before it', async (code) => {
  expect(await judge({ error: server(code) })).toBe('contention');
  expect(await judge({ error: server('25P02'), transactionFailure: server(code) })).toBe('contention');
  expect(await judge({ error: server(code), where: 'before' })).toBe('infrastructure');
});

test.each(['23505', '22P02', '42P01', '25P02'])('%s is the handler’s', async (code) => {
  expect(await judge({ error: server(code) }, false)).toBe('handler');
});

test('an error without SQLSTATE is the handler’s if the database answers', async () => {
  expect(await judge({}, true)).toBe('handler');
  expect(await judge({}, false)).toBe('infrastructure');
  const timeout = new ReplaysafeError('RS_INBOX_HANDLER_TIMEOUT');
  expect(await judge({ error: timeout }, true)).toBe('handler');
  expect(await judge({ error: timeout }, false)).toBe('infrastructure');
  // Node’s own codes look like a SQLSTATE, and messages say nothing.
  expect(await judge({ error: Object.assign(new Error('deadlock detected'), { code: 'EPIPE' }) })).toBe('handler');
});

test('what says retryable is believed, the outermost first', async () => {
  expect(await judge({ error: new ReplaysafeError('RS_CLIENT_TIMEOUT') })).toBe('infrastructure');
  expect(await judge({ error: new ReplaysafeError('RS_TX_OUTCOME_UNKNOWN') })).toBe('infrastructure');
  expect(await judge({ error: new ReplaysafeError('RS_CLIENT_KEY_REQUIRED') })).toBe('handler');
  const wrapped = new Error('charge', { cause: new ReplaysafeError('RS_CLIENT_TIMEOUT') });
  expect(isRetryable(wrapped)).toBe(true);
  expect(isRetryable(Object.assign(wrapped, { retryable: false }))).toBe(false);
  expect(isRetryable('text')).toBe(false);
});

const failure = (kind: RunFailure['kind'], culprit?: number): RunFailure => ({ kind, error: undefined, culprit });
const run = (length: number, contentions = 0) => ({ length, contentions, maxContentions: 2 });

test('an attempt is counted only against an event that was alone', () => {
  expect(afterFailure(failure('handler', 4), run(9))).toEqual({ step: 'isolate', culprit: 4 });
  expect(afterFailure(failure('handler'), run(9))).toEqual({ step: 'halve', length: 5 });
  expect(afterFailure(failure('handler'), run(2))).toEqual({ step: 'halve', length: 1 });
  expect(afterFailure(failure('handler', 0), run(1))).toEqual({ step: 'count' });
  expect(afterFailure(failure('handler'), run(1))).toEqual({ step: 'count' });
});

test('infrastructure is tried again for ever; where only one handler meets it, the others go ahead', () => {
  expect(afterFailure(failure('infrastructure'), run(9, 99))).toEqual({ step: 'again' });
  expect(afterFailure(failure('infrastructure', 4), run(9))).toEqual({ step: 'isolate', culprit: 4 });
  expect(afterFailure(failure('infrastructure', 0), run(1))).toEqual({ step: 'again' });
});

test('contention is tried again a bounded number of times', () => {
  expect(afterFailure(failure('contention', 1), run(3, 2))).toEqual({ step: 'again' });
  expect(afterFailure(failure('contention', 1), run(3, 3))).toEqual({ step: 'isolate', culprit: 1 });
  expect(afterFailure(failure('contention', 0), run(1, 3))).toEqual({ step: 'count' });
});

test('an event is given up after its last attempt, unless there is nowhere to put it', () => {
  expect(afterAttempt(4, 5, 'outbox')).toBe('retry');
  expect(afterAttempt(5, 5, 'outbox')).toBe('park');
  expect(afterAttempt(99, 5, 'stall')).toBe('retry');
});
