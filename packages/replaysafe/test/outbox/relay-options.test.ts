import { expect, test } from 'vitest';
import { createOutbox, createRelay } from '../../src/outbox/index.js';
import type { SqlPort } from '../../src/ports/sql.js';

const fail = (): never => {
  throw new Error('creating does no I/O');
};
const sql: SqlPort = { query: fail, transaction: fail, join: fail };
const publisher = { publish: fail, stop: fail };
const relay = (options: object) => () => createRelay({ sql, publisher, ...options });

test('creating does no I/O; stopping what was never started is harmless', async () => {
  const created = createRelay({ sql, publisher });
  await created.stop();
  await created.stop();
  await created[Symbol.asyncDispose]();
  expect(created.name).toMatch(/^relay-[0-9a-f]{8}$/);
});

test.each([
  ['an unknown name', { batchsize: 1 }, 'RS_OPTION_UNKNOWN', /did you mean "batchSize"/],
  ['per-key order', { order: 'key' }, 'RS_OPTION_INVALID', /order must be 'none'/],
  ['an unknown mode', { mode: 'three-phase' }, 'RS_OPTION_INVALID', /single-phase, two-phase/],
  ['an empty batch', { batchSize: 0 }, 'RS_OPTION_INVALID', /batchSize/],
  ['a poll that is busier than idle', { pollBusyMs: 20, pollIdleMs: 10 }, 'RS_OPTION_INVALID', /pollBusyMs/],
  ['a back-off that is no object', { backoff: 5 }, 'RS_OPTION_INVALID', /backoff must be an object/],
  ['an unknown back-off name', { backoff: { base: 5 } }, 'RS_OPTION_UNKNOWN', /did you mean "baseMs"/],
  ['a schema that would need quoting', { schema: 'Outbox"' }, 'RS_OPTION_INVALID', /schema/],
  ['signals that are none', { signals: {} }, 'RS_OPTION_INVALID', /signals/],
  ['no publisher', { publisher: undefined }, 'RS_OPTION_REQUIRED', /publisher/],
])('refuses %s', (_, options, code, message) => {
  expect(relay(options)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) as unknown }));
});

test('a back-off takes its defaults one by one', () => {
  expect(relay({ backoff: { baseMs: 5 } })).not.toThrow();
});

test('the outbox refuses unknown names too', () => {
  expect(() => createOutbox({ sql, scheme: 'x' } as never)).toThrow(/did you mean "schema"/);
});
