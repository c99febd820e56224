import { afterEach, expect, test } from 'vitest';
import { closeAll, failure, harness, listen, next, settledAtOnce, through } from './layers-harness.js';
import { drip, neverAnswer, resetAfterRequest, respond, respondAfter, type RawReaction } from './raw-server.js';

afterEach(closeAll);

const busy = (retryAfter: string): RawReaction => respond(503, { 'retry-after': retryAfter });
const KEYED = { idempotencyKey: 'charge-1', json: { amountMinor: 1990 } };

test('R-RES-RE-2: waits with full jitter, doubling from 200 ms', async () => {
  const { client, clock, server } = await harness([resetAfterRequest, resetAfterRequest, respond(201)]);
  const waits = listen('client.backed-off');
  const call = client.post('/charges', KEYED);
  for (let n = 1; n <= 2; n++) {
    await server.arrived(n);
    await next('client.backed-off');
    await clock.advance(200);
  }
  expect((await call).tries).toBe(3);
  expect(waits.map(({ delayMs }) => delayMs)).toEqual([100, 200]);
});

test('R-RES-TO: no answer in time is asked for again with the same key, to the millisecond', async () => {
  const { client, clock, server } = await harness([neverAnswer], { timeouts: { headersMs: 2_000 } });
  const ended = failure(client.post('/charges', KEYED));
  const failed = listen('client.failed');
  for (let n = 1; n <= 3; n++) {
    await server.arrived(n);
    await clock.advance(1_999);
    expect(failed).toHaveLength(n - 1);
    await clock.advance(1);
    expect(failed).toHaveLength(n);
    await clock.advance(n * 100);
  }
  expect(await ended).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN', idempotencyKey: 'charge-1' });
  expect(server.arrivals.map(({ key }) => key)).toEqual(['charge-1', 'charge-1', 'charge-1']);
});

test('a provider that times out after it charged is asked again with the same key, and its replay is reported', async () => {
  const { client, clock, server } = await harness([neverAnswer, respond(201, { 'Idempotent-Replayed': 'true' })]);
  const call = client.post('/charges', KEYED);
  await server.arrived(1);
  await clock.advance(5_000);
  expect(await through(call, clock)).toMatchObject({ status: 201, replayed: true, tries: 2 });
  expect(new Set(server.arrivals.map(({ key }) => key)).size).toBe(1);
});

test('R-RES-TO: the total deadline ends the call, whatever the tries still allowed', async () => {
  const { client, clock, server } = await harness([neverAnswer]);
  const ended = failure(client.post('/charges', { ...KEYED, timeoutMs: 4_000 }));
  await server.arrived(1);
  await clock.advance(3_999);
  expect(await settledAtOnce(ended)).toBe(false);
  await clock.advance(1);
  expect(await settledAtOnce(ended)).toBe(true);
  expect(await ended).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  expect(server.arrivals).toHaveLength(1);
});

test('R-RES-TO: a body that drips for ever is cut by the deadline of the call, and its connection with it', async () => {
  const { client, clock, server } = await harness([drip, respond(200)], { connections: 1 });
  const ended = failure(client.get('/report', { timeoutMs: 1_000 }));
  await server.arrived(1);
  expect(await through(ended, clock)).toMatchObject({ code: 'RS_CLIENT_TIMEOUT' });
  expect((await client.get('/report')).status).toBe(200);
  expect(server.connections).toBe(2);
});

test('a read that got no answer is a timeout, with retry false after one arrival', async () => {
  const { client, clock, server } = await harness([neverAnswer]);
  const ended = failure(client.get('/balance', { retry: false }));
  await server.arrived(1);
  await clock.advance(5_000);
  expect(await ended).toMatchObject({ code: 'RS_CLIENT_TIMEOUT', retryable: true });
});

test('R-RES-TO: a body that stands still is cut by bodyMs, one that moves is not', async () => {
  const slow: RawReaction = {
    react: (socket) => {
      socket.write('HTTP/1.1 200 X\r\ncontent-length: 6\r\n\r\nha');
    },
  };
  const { client, clock, server } = await harness([slow, respond(200, {}, 'whole')], {
    timeouts: { headersMs: 1_000, bodyMs: 3_000 },
  });
  const call = client.get('/report');
  await server.arrived(1);
  // The head and the first bytes have arrived when the clock has let the I/O of a few turns pass.
  await clock.advance(2_999);
  expect(server.arrivals).toHaveLength(1);
  await clock.advance(10);
  await clock.advance(1_000);
  expect((await call).text()).toBe('whole');
});

test('a connection that is never made in time was not used: the write is not of unknown outcome', async () => {
  // A server that never begins the TLS handshake.
  const { client: plain, server, clock } = await harness([neverAnswer]);
  await plain.stop();
  const { client } = await harness([], { baseUrl: server.url.replace('http:', 'https:'), clock });
  const ended = failure(client.post('/charges', { json: {}, retry: false }));
  await clock.advance(999);
  expect(await settledAtOnce(ended)).toBe(false);
  await clock.advance(1);
  expect(await settledAtOnce(ended)).toBe(true);
  expect(await ended).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
});

test.each([
  ['seconds', '4'],
  ['a date', 'Thu, 01 Jan 2026 00:00:04 GMT'],
])('Retry-After as %s is waited for, and up to a fifth longer', async (_name, retryAfter) => {
  const { client, clock } = await harness([busy(retryAfter), respond(200)]);
  const call = client.get('/x');
  expect((await next('client.backed-off')).delayMs).toBe(4_400);
  await clock.advance(4_400);
  expect((await call).tries).toBe(2);
});

test.each(['30', '2147484', '99999999999999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
  'Retry-After of %s does not fit the deadline: the answer comes back at once, no timer overflows into hammering',
  async (retryAfter) => {
    const { client, clock, server } = await harness([busy(retryAfter)]);
    const answer = await client.get('/x');
    expect(answer.status).toBe(503);
    expect(answer.retryAfterMs).toBeGreaterThanOrEqual(30_000);
    await clock.advance(60_000);
    expect(server.arrivals).toHaveLength(1);
  },
);

test('R-RES-RE-X4: an outage is answered with the retries of the budget, not with three times the traffic', async () => {
  const { client, clock, server } = await harness([respond(503)], {
    retry: { budget: 2 },
    breaker: { window: 1_000, minimumTries: 1_000 },
  });
  const spent = listen('client.budget-spent');
  for (let n = 0; n < 10; n++) {
    const answer = await through(client.post('/charges', { idempotencyKey: `k-${n}` }), clock);
    expect(answer.status).toBe(503);
  }
  expect(server.arrivals).toHaveLength(12);
  expect(spent).toHaveLength(9);
});

test('retry with an empty body: what was sent first is sent again, byte for byte', async () => {
  const { client, clock, server } = await harness([respond(503), respond(503), respond(200)]);
  const body = Buffer.from('{"amount":"1990", "note": "\\u00e9 \u00e9"}');
  const call = client.post('/charges', { idempotencyKey: 'k', body });
  body.fill(0);
  await through(call, clock);
  const [first, ...others] = server.arrivals;
  expect(first!.body.toString()).toBe('{"amount":"1990", "note": "\\u00e9 \u00e9"}');
  for (const other of others) expect(other.body.equals(first!.body)).toBe(true);
});

test("the caller's key replaced by a generated one: it is sent once, unchanged, in any letter case", async () => {
  const { client, clock, server } = await harness([respond(503), respond(200)]);
  const call = client.post('/x', { headers: { 'IDEMPOTENCY-KEY': 'mine', Accept: 'text/plain' } });
  await through(call, clock);
  for (const { headers } of server.arrivals)
    expect(headers).toMatchObject({ 'idempotency-key': 'mine', accept: 'text/plain' });
});

test('abort in a long back-off: settled in the same tick, no further try, other calls untouched', async () => {
  const caller = new AbortController();
  const { client, clock, server } = await harness([busy('10'), respondAfter(new Promise(() => undefined), 200)]);
  const waiting = failure(client.get('/waits', { signal: caller.signal }));
  await next('client.backed-off');
  const running = client.get('/runs');
  await server.arrived(2);
  caller.abort();
  expect(await settledAtOnce(waiting)).toBe(true);
  expect(await waiting).toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  await clock.advance(4_000);
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/waits', '/runs']);
  expect(await settledAtOnce(running)).toBe(false);
});

test('one timeout aborts every call: each try ends on its own', async () => {
  const { client, clock, server } = await harness([neverAnswer, respond(200)], { timeouts: { headersMs: 5_000 } });
  const short = failure(client.get('/short', { timeoutMs: 50 }));
  await server.arrived(1);
  const long = client.get('/long');
  await clock.advance(50);
  expect(await short).toMatchObject({ code: 'RS_CLIENT_TIMEOUT' });
  expect((await long).status).toBe(200);
});

test('running calls share one timer', async () => {
  const { client, clock, server } = await harness([neverAnswer]);
  const calls = Array.from({ length: 30 }, () => failure(client.get('/x', { retry: false })));
  await server.arrived(30);
  expect(clock.pendingTimers).toBe(1);
  await clock.advance(5_000);
  await Promise.all(calls);
});

test.each([0, -1, 1.5, Number.NaN, Infinity, 2_147_483_648])('a timeoutMs of %s is refused', async (timeoutMs) => {
  const { client } = await harness([respond(200)]);
  await expect(client.get('/x', { timeoutMs })).rejects.toMatchObject({ code: 'RS_OPTION_INVALID' });
});
