import { expect, test } from 'vitest';
import type { PreparedCall } from '../../src/client/call.js';
import { Exchange } from '../../src/client/exchange.js';
import { failureOf, type GiveUp } from '../../src/client/failure.js';
import { createFakeClock } from '../../src/testing/index.js';

function failed(method: 'GET' | 'POST', sent: boolean, error: Error, givenUp?: GiveUp) {
  const exchange = new Exchange({ ended: () => undefined, released: () => undefined }, createFakeClock());
  exchange.failure = error;
  exchange.sent = sent;
  const call: PreparedCall = { method, path: '/', headers: [], body: null, key: 'k', retry: true, repeatable: false };
  const { error: shown, ...rest } = failureOf(call, exchange, givenUp);
  return { code: shown.code, ...rest };
}
const coded = (code: string): Error => Object.assign(new Error(code), { code });

test.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'CONNECT_TIMEOUT'])(
  '%s: nothing was sent, and it is tried again',
  (code) => {
    const expected = { code: 'RS_CLIENT_SYSTEM_UNAVAILABLE', transient: true, maybeExecuted: false, ill: true };
    expect(failed('POST', false, coded(code))).toEqual(expected);
  },
);

test.each([
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])('a certificate that is not accepted (%s) will not be so the next time', (code) => {
  expect(failed('POST', false, coded(code))).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE', transient: false });
});

test.each(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET', 'HEADERS_TIMEOUT', 'BODY_TIMEOUT'])(
  '%s with the request on its way: unknown for a write, not for a read',
  (code) => {
    expect(failed('POST', true, coded(code))).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN', transient: true });
    const read = code.endsWith('TIMEOUT') ? 'RS_CLIENT_TIMEOUT' : 'RS_CLIENT_SYSTEM_UNAVAILABLE';
    expect(failed('GET', true, coded(code))).toMatchObject({ code: read, transient: true, maybeExecuted: false });
  },
);

test('a host with several addresses is judged by the first', () => {
  const error = new AggregateError([coded('ECONNREFUSED'), coded('ENETUNREACH')]);
  expect(failed('POST', false, error)).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE', transient: true });
});

test.each([
  ['aborted', 'RS_CLIENT_ABORTED', false],
  ['stopped', 'RS_CLIENT_STOPPED', false],
  ['timed-out', 'RS_CLIENT_TIMEOUT', true],
] as const)('what we ended ourselves (%s) is not tried again', (givenUp, code, ill) => {
  expect(failed('POST', false, new Error('x'), givenUp)).toEqual({ code, transient: false, maybeExecuted: false, ill });
  expect(failed('POST', true, new Error('x'), givenUp)).toEqual({
    code: 'RS_CLIENT_OUTCOME_UNKNOWN',
    transient: false,
    maybeExecuted: true,
    ill,
  });
});

test.each(['UND_ERR_INVALID_ARG', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'])(
  'what the pool refuses says nothing about the remote system: %s',
  (code) => {
    expect(failed('POST', false, coded(code))).toMatchObject({
      code: 'RS_CLIENT_REQUEST_INVALID',
      transient: false,
      ill: false,
    });
  },
);
