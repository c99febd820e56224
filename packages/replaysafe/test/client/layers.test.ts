import { afterEach, expect, test } from 'vitest';
import { closeAll, failure, harness, listen, next, settledAtOnce, through } from './layers-harness.js';
import { neverAnswer, resetAfterRequest, respond, respondAfter, type RawReaction } from './raw-server.js';

afterEach(closeAll);

const until = (released: Promise<unknown>): RawReaction => respondAfter(released, 200);
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    opened,
    open: () => {
      open();
    },
  };
}
const signals = () => {
  const stopping = new AbortController();
  const deadline = new AbortController();
  return { stopping, deadline, signals: { stopping: stopping.signal, deadline: deadline.signal, budgetMs: 1_000 } };
};
const ONE = { bulkhead: { concurrent: 1 } };

test('R-RES-CB: an open breaker refuses by name without sending, warns, and closes after good probes', async () => {
  const script = [...Array.from({ length: 20 }, () => respond(500)), respond(200)];
  const { client, clock, server, warnings } = await harness(script, { retry: { tries: 1 } });
  const changes = listen('client.breaker-changed');
  const refused = listen('client.refused');
  for (let n = 0; n < 20; n++) await client.get('/x');
  await expect(client.get('/x')).rejects.toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE', retryable: true });
  expect(server.arrivals).toHaveLength(20);
  expect(refused).toEqual([{ client: 'payments', method: 'GET', reason: 'breaker' }]);
  await clock.advance(30_000);
  await expect(client.post('/charges', { retry: false })).rejects.toMatchObject({
    code: 'RS_CLIENT_SYSTEM_UNAVAILABLE',
  });
  for (let n = 0; n < 3; n++) expect((await client.post('/charges', { idempotencyKey: `k-${n}` })).status).toBe(200);
  expect((await client.post('/charges', { retry: false })).status).toBe(200);
  expect(changes.map(({ to }) => to)).toEqual(['open', 'half-open', 'closed']);
  expect(warnings).toHaveLength(3);
});

test('R-RES-CB: each try counts, and answers that are no failure of the system do not', async () => {
  const { client, clock, server } = await harness([respond(404)], { breaker: { window: 6, minimumTries: 6 } });
  for (let n = 0; n < 10; n++) await client.get('/missing');
  expect(server.arrivals).toHaveLength(10);
  const failing = await harness([resetAfterRequest], { breaker: { window: 6, minimumTries: 6 } });
  for (let n = 0; n < 2; n++) await failure(through(failing.client.get('/x'), failing.clock));
  expect(failing.server.arrivals).toHaveLength(6);
  await expect(failing.client.get('/x')).rejects.toThrow('the circuit breaker is open');
  expect(clock.pendingTimers).toBeLessThan(2);
});

test('a breaker that opens during the back-off of a write hides neither its answer nor that it may be executed', async () => {
  const options = { breaker: { window: 1, minimumTries: 1, failurePercent: 100 } };
  const answered = await harness([respond(503)], options);
  expect((await through(answered.client.post('/x', { idempotencyKey: 'k' }), answered.clock)).status).toBe(503);
  const unanswered = await harness([resetAfterRequest], options);
  const ended = failure(through(unanswered.client.post('/x', { idempotencyKey: 'k' }), unanswered.clock));
  expect(await ended).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  expect(unanswered.server.arrivals).toHaveLength(1);
});

test('money: the breaker opens at 30 of a hundred', async () => {
  const script = Array.from({ length: 20 }, (_, n) => respond(n < 14 ? 200 : 500));
  const { client } = await harness(script, { money: true, retry: { tries: 1 } });
  for (let n = 0; n < 20; n++) await client.get('/x');
  await expect(client.get('/x')).rejects.toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
});

test('money: a write has a key, is not limited to one try and is not declared repeatable', async () => {
  const { client, server } = await harness([respond(200)], { money: true });
  const refused = { code: 'RS_CLIENT_KEY_REQUIRED', retryable: false };
  await expect(client.post('/charges', { json: {} })).rejects.toMatchObject(refused);
  await expect(client.post('/charges', { retry: false })).rejects.toMatchObject(refused);
  await expect(client.post('/charges', { idempotencyKey: 'k', retry: false })).rejects.toMatchObject(refused);
  await expect(client.put('/charges/1', { repeatable: true })).rejects.toMatchObject(refused);
  expect(server.arrivals).toHaveLength(0);
  await client.post('/charges', { idempotencyKey: 'k' });
  await client.get('/charges/1', { retry: false });
  expect(server.arrivals).toHaveLength(2);
});

test('R-RES-BH: over-admits: with one slot one request runs at a time, in order of arrival', async () => {
  const { client, server } = await harness([respond(200)], ONE);
  await Promise.all(Array.from({ length: 20 }, (_, n) => client.get(`/${n}`)));
  expect(server.mostAtOnce).toBe(1);
  expect(server.arrivals.map(({ path }) => path)).toEqual(Array.from({ length: 20 }, (_, n) => `/${n}`));
});

test('R-RES-BH: what may neither run nor wait is refused at once, what waits too long then', async () => {
  const { client, clock, server } = await harness([neverAnswer], {
    bulkhead: { concurrent: 1, queue: 1, queueMs: 700 },
  });
  const running = failure(client.get('/runs', { retry: false }));
  await server.arrived(1);
  const waiting = failure(client.post('/waits', { idempotencyKey: 'k' }));
  const refused = failure(client.post('/refused', { idempotencyKey: 'k' }));
  expect(await settledAtOnce(refused)).toBe(true);
  expect(await refused).toMatchObject({ code: 'RS_CLIENT_OVERLOADED', retryable: true });
  await clock.advance(699);
  expect(await settledAtOnce(waiting)).toBe(false);
  await clock.advance(1);
  expect(await waiting).toMatchObject({ code: 'RS_CLIENT_OVERLOADED' });
  await clock.advance(5_000);
  expect(await running).toMatchObject({ code: 'RS_CLIENT_TIMEOUT' });
  expect(server.arrivals).toHaveLength(1);
});

test('R-RES-BH: a back-off holds no slot', async () => {
  const { client, clock } = await harness([respond(503, { 'retry-after': '10' }), respond(200)], ONE);
  const waiting = client.get('/waits');
  await next('client.backed-off');
  expect((await client.get('/other')).status).toBe(200);
  await clock.advance(12_000);
  expect((await waiting).tries).toBe(2);
});

test('R-RES-BH: the slot of a call that was given up is free when its work has ended, not before', async () => {
  // The TLS handshake never begins: what was given up goes on waiting for its connection inside the pool.
  const plain = await harness([neverAnswer]);
  const { client, clock } = await harness([], { ...ONE, baseUrl: plain.server.url.replace('http:', 'https:') });
  const caller = new AbortController();
  const first = failure(client.get('/first', { signal: caller.signal }));
  caller.abort();
  expect(await settledAtOnce(first)).toBe(true);
  const second = failure(client.get('/second'));
  await clock.advance(1_000);
  expect(await second).toMatchObject({ code: 'RS_CLIENT_OVERLOADED' });
});

test('abort while queued: settled in the same tick, and the next in the queue gets the slot', async () => {
  const { opened, open } = gate();
  const { client, server } = await harness([until(opened), respond(200)], ONE);
  const running = client.get('/runs');
  await server.arrived(1);
  const caller = new AbortController();
  const queued = failure(client.post('/gives-up', { idempotencyKey: 'k', signal: caller.signal }));
  const next = client.get('/next');
  caller.abort();
  expect(await settledAtOnce(queued)).toBe(true);
  expect(await queued).toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  open();
  await Promise.all([running, next]);
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/runs', '/next']);
});

test('stop: queued and backing-off calls end in the same tick, a running try may finish', async () => {
  const { opened, open } = gate();
  const lifecycle = signals();
  const options = { ...ONE, signals: lifecycle.signals };
  const { client, server } = await harness([respond(503, { 'retry-after': '9' }), until(opened)], options);
  const backingOff = client.get('/backs-off');
  await next('client.backed-off');
  const running = client.post('/runs', { idempotencyKey: 'k' });
  await server.arrived(2);
  const queued = failure(client.post('/queued', { idempotencyKey: 'k' }));
  lifecycle.stopping.abort();
  expect(await settledAtOnce(Promise.all([backingOff, queued]))).toBe(true);
  // An answer that it has says more than the stop.
  expect((await backingOff).status).toBe(503);
  expect(await queued).toMatchObject({ code: 'RS_CLIENT_STOPPED', retryable: true });
  expect(await settledAtOnce(running)).toBe(false);
  open();
  expect((await running).status).toBe(200);
});

test('stop: after it has begun, a call is still sent once, and waits for nothing', async () => {
  const lifecycle = signals();
  const { client, server } = await harness([respond(503)], { signals: lifecycle.signals });
  lifecycle.stopping.abort();
  expect((await client.post('/x', { idempotencyKey: 'k' })).tries).toBe(1);
  expect(server.arrivals).toHaveLength(1);
});

test('stop: at its deadline running tries end, a write with an unknown outcome', async () => {
  const lifecycle = signals();
  const { client, server } = await harness([neverAnswer], { signals: lifecycle.signals });
  const write = failure(client.post('/x', { idempotencyKey: 'k' }));
  const read = failure(client.get('/x'));
  await server.arrived(2);
  lifecycle.deadline.abort();
  expect(await settledAtOnce(Promise.all([write, read]))).toBe(true);
  expect(await write).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  expect(await read).toMatchObject({ code: 'RS_CLIENT_STOPPED' });
  expect(server.arrivals).toHaveLength(2);
});

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
test('a trace that cannot be had does not fail the call', async () => {
  const { client, server } = await harness([respond(200)], {
    traceparent: () => {
      throw new Error('no tracer');
    },
  });
  await client.get('/x');
  expect(server.arrivals[0]?.headers.traceparent).toBeUndefined();
});

test('traceparent goes out with every call; one of the call comes first, and one that is none stays here', async () => {
  const traces = [TRACE, TRACE, 'x'.repeat(9), undefined];
  const { client, server } = await harness([respond(200)], { traceparent: () => traces.shift() });
  await client.get('/1');
  await client.get('/2', { headers: { Traceparent: 'own' } });
  await client.get('/3');
  await client.get('/4');
  await client.get('/5');
  expect(server.arrivals.map(({ headers }) => headers.traceparent)).toEqual([
    TRACE,
    'own',
    TRACE,
    undefined,
    undefined,
  ]);
});

test('a key made inside of what is repeated is warned of, and one key for two things', async () => {
  const { client, warnings } = await harness([respond(200)], { warnOnKeyMisuse: true });
  const misuses = listen('client.key-misused');
  const order = { orderId: 1 };
  await client.post('/charges', { idempotencyKey: 'a', json: order });
  await client.post('/charges', { idempotencyKey: 'a', json: { orderId: 1 } });
  expect(misuses).toEqual([]);
  await client.post('/charges', { idempotencyKey: 'b', json: order });
  await client.post('/charges', { idempotencyKey: 'a', json: { orderId: 2 } });
  await client.post('/refunds', { idempotencyKey: 'b', json: order });
  expect(misuses.map(({ misuse }) => misuse)).toEqual([
    'two-keys-for-one-object',
    'two-requests-with-one-key',
    'two-requests-with-one-key',
  ]);
  expect(warnings).toHaveLength(3);
  expect(JSON.stringify(warnings)).not.toMatch(/"[ab]"/);
});
