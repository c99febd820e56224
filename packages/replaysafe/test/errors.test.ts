import { expect, test } from 'vitest';
import { ERRORS, hasCode, ReplaysafeError, type ErrorCode } from '../src/errors.js';

test('an error carries its code, status and whether to try again, and keeps its cause', () => {
  const cause = new Error('socket closed');
  const error = new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause, detail: 'at start' });
  expect(error).toMatchObject({ name: 'ReplaysafeError', code: 'RS_SQL_UNAVAILABLE', status: 503, retryable: true });
  expect(error.message).toBe('the database cannot be reached: at start');
  expect(error.cause).toBe(cause);
  expect('cause' in new ReplaysafeError('RS_TX_LOST')).toBe(false);
});

test('codes are matched by code: an error of another copy of the package is one too', () => {
  const foreign = Object.assign(new Error('elsewhere'), { code: 'RS_TX_LOST' });
  expect(hasCode(foreign, 'RS_TX_ABORTED', 'RS_TX_LOST')).toBe(true);
  expect(hasCode(foreign, 'RS_TX_ABORTED')).toBe(false);
  expect(hasCode({ code: 'RS_TX_LOST' }, 'RS_TX_LOST')).toBe(false);
  expect(hasCode(undefined, 'RS_TX_LOST')).toBe(false);
});

test.each(Object.keys(ERRORS) as ErrorCode[])('%s is well formed', (code) => {
  expect(code).toMatch(/^RS_[A-Z]+(_[A-Z]+)+$/);
  const { message, status, retryable } = ERRORS[code];
  expect(message).toMatch(/^(?!.*\.$)\S.*\S$/s);
  expect([400, 409, 413, 422, 500, 503, 504]).toContain(status);
  // A client repeats a 503 or 504; what is not worth repeating must not look like one.
  if (status === 503 || status === 504) expect(retryable).toBe(true);
});
