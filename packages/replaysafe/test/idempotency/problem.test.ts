import { describe, expect, test } from 'vitest';
import { ERRORS } from '../../src/errors.js';
import { createIdempotency, PROBLEMS, type ProblemCode } from '../../src/idempotency/index.js';
import { judge } from '../../src/idempotency/states.js';
import type { SqlPort } from '../../src/ports/sql.js';

const unused = {
  query: () => Promise.reject(new Error('unused')),
  transaction: () => Promise.reject(new Error('unused')),
};
const create = (more: object = {}) =>
  createIdempotency({ sql: unused as unknown as SqlPort, scope: 'single-tenant', ...more });

describe('problems', () => {
  test.each(Object.entries(PROBLEMS))('%s says the same in its status line and its body', (code, type) => {
    const { status, headers, body } = create().problem(code as ProblemCode);
    const { message, status: tableStatus, retryable } = ERRORS[code as ProblemCode];
    expect(JSON.parse(String(body))).toEqual({
      type: `urn:replaysafe:problem:${type}`,
      title: message,
      status: tableStatus,
      retryable,
      code,
    });
    expect(status).toBe(tableStatus);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(headers['retry-after']).toBe(retryable ? '1' : undefined);
  });

  test('each has a type of its own', () => {
    expect(new Set(Object.values(PROBLEMS)).size).toBe(Object.keys(PROBLEMS).length);
  });
});

describe('options', () => {
  test.each([
    [{ scope: undefined }, /scope is required/],
    [{ scope: 'tenant' }, /scope must be a function/],
    [{ storedHeaders: ['Set-Cookie'] }, /set-cookie, which is never stored/],
    [{ storedHeaders: ['authorization'] }, /never stored/],
    [{ storedHeaders: 'x-a' }, /must be a list/],
    [{ waitMs: 60_000 }, /from 0 to 10000/],
    [{ reusedStatus: 400 }, /must be 422 or 409/],
    [{ retention: 1 }, /did you mean "retentionMs"/],
    [{ schema: 'a"b' }, /must match/],
  ])('%j is refused', (given, message) => {
    expect(() => create(given)).toThrow(message);
  });
});

describe('judging a record', () => {
  const fp = Buffer.from('fp');
  const origin = { fp, fpVersion: 1, writtenBy: '1' };
  const answer = { status: 201, headers: {}, body: null };

  test.each([
    [{ ...origin, state: 'completed', pastRetention: false, answer }, 'replay'],
    [{ ...origin, state: 'completed', pastRetention: false, answer: undefined }, 'response-unavailable'],
    [{ ...origin, state: 'completed', pastRetention: true, answer }, 'expired'],
    [{ ...origin, state: 'expired' }, 'expired'],
    [{ ...origin, state: 'running', leased: true }, 'in-progress'],
    [{ ...origin, state: 'running', leased: false }, 'response-unavailable'],
    [{ ...origin, fpVersion: 2, state: 'running', leased: true }, 'unreadable'],
  ] as const)('%#', (record, kind) => {
    expect(judge(record, fp, 1).kind).toBe(kind);
    if (record.fpVersion === 1) expect(judge(record, Buffer.from('of'), 1).kind).toBe('reused');
  });
});
