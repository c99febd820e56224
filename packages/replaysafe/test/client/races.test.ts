import { getEventListeners } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { closeAll, failure, harness, listen, next, settledAtOnce, through } from './layers-harness.js';
import { neverAnswer, resetAfterRequest, respond, respondAfter } from './raw-server.js';

afterEach(closeAll);

const KEYED = { idempotencyKey: 'k' };
const BRITTLE = { window: 1, minimumTries: 1, failurePercent: 100 };

function gate() {
  const gate = { open: (): void => undefined, opened: Promise.resolve() };
  gate.opened = new Promise<void>((resolve) => {
    gate.open = resolve;
  });
  return gate;
}

test('a breaker that opens while a call is queued keeps it from being sent', async () => {
  const { client, server } = await harness([resetAfterRequest], { bulkhead: { concurrent: 1 }, breaker: BRITTLE });
  const running = failure(client.get('/runs', { retry: false }));
  const queued = failure(client.get('/queued'));
  await running;
  expect(await queued).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/runs']);
  // Its slot has gone back.
  expect(await failure(client.get('/later'))).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
});

test('a probe that finds no slot makes room for another one', async () => {
  const long = gate();
  const probe = gate();
  const script = [respondAfter(long.opened, 200), resetAfterRequest, respondAfter(probe.opened, 200), respond(200)];
  const { client, clock, server } = await harness(script, {
    bulkhead: { concurrent: 2, queue: 0 },
    breaker: { ...BRITTLE, openMs: 100, probes: 2 },
  });
  const running = client.get('/long');
  await server.arrived(1);
  await failure(client.get('/fails', { retry: false }));
  await clock.advance(100);
  const first = client.get('/probe');
  await server.arrived(3);
  await expect(client.get('/no-slot')).rejects.toMatchObject({ code: 'RS_CLIENT_OVERLOADED' });
  probe.open();
  await first;
  const changes = listen('client.breaker-changed');
  expect((await client.get('/second-probe')).status).toBe(200);
  expect(changes.map(({ to }) => to)).toEqual(['closed']);
  long.open();
  await running;
});

test('a queued call that is given up in the moment its slot comes passes the slot on', async () => {
  const { client, server } = await harness([respond(200)], { bulkhead: { concurrent: 1 } });
  const caller = new AbortController();
  const running = client.get('/runs');
  const queued = failure(client.get('/gives-up', { signal: caller.signal }));
  const third = client.get('/third');
  await running;
  caller.abort();
  expect(await queued).toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  await third;
  expect((await client.get('/fourth')).status).toBe(200);
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/runs', '/third', '/fourth']);
});

test('whoever gives up waiting leaves the place in the queue to another', async () => {
  const { client, server } = await harness([neverAnswer], { bulkhead: { concurrent: 1, queue: 1 } });
  const running = failure(client.get('/runs'));
  await server.arrived(1);
  const caller = new AbortController();
  const first = failure(client.get('/first', { signal: caller.signal }));
  caller.abort();
  await first;
  const second = failure(client.get('/second'));
  expect(await settledAtOnce(second)).toBe(false);
  await client.stop(AbortSignal.abort());
  expect(await second).toMatchObject({ code: 'RS_CLIENT_STOPPED' });
  expect(await running).toMatchObject({ code: 'RS_CLIENT_STOPPED' });
});

test('once the process stops, a call that would have to wait for a slot does not begin to', async () => {
  const stopping = new AbortController();
  const signals = { stopping: stopping.signal, deadline: new AbortController().signal, budgetMs: 1_000 };
  const { client, server } = await harness([neverAnswer], { bulkhead: { concurrent: 1 }, signals });
  const running = failure(client.get('/runs'));
  await server.arrived(1);
  stopping.abort();
  const late = failure(client.post('/late', KEYED));
  expect(await settledAtOnce(late)).toBe(true);
  expect(await late).toMatchObject({ code: 'RS_CLIENT_STOPPED' });
  expect(await settledAtOnce(running)).toBe(false);
});

test('a gateway said 503, then nobody listens any more: the write may have been executed all the same', async () => {
  const { client, clock, server } = await harness([respond(503)]);
  const ended = failure(client.post('/charges', KEYED));
  await next('client.backed-off');
  await server.close();
  expect(await through(ended, clock)).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
});

test('a limiter said 429, then nobody listens any more: nothing was executed', async () => {
  const { client, clock, server } = await harness([respond(429)]);
  const ended = failure(client.post('/charges', KEYED));
  await next('client.backed-off');
  await server.close();
  expect(await through(ended, clock)).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
});

test('a stored failure that is replayed does not open the breaker: the system works', async () => {
  const { client } = await harness([respond(500, { 'idempotent-replayed': 'true' })], { breaker: BRITTLE });
  for (let n = 0; n < 3; n++) expect((await client.post('/charges', KEYED)).status).toBe(500);
});

test('stop waits for what runs, ends what waits, and leaves no timer', async () => {
  const running = gate();
  const { client, clock, server } = await harness([respondAfter(running.opened, 201)], { bulkhead: { concurrent: 1 } });
  const call = client.post('/charges', KEYED);
  await server.arrived(1);
  const queued = failure(client.post('/queued', KEYED));
  const stopped = client.stop();
  expect(await settledAtOnce(queued)).toBe(true);
  expect(await settledAtOnce(stopped)).toBe(false);
  running.open();
  expect((await call).status).toBe(201);
  await stopped;
  expect(clock.pendingTimers).toBe(0);
});

test('calls that share one signal put one listener on it, which all of them obey, and leave none', async () => {
  const { client, server } = await harness([neverAnswer]);
  const caller = new AbortController();
  const listeners = () => getEventListeners(caller.signal, 'abort').length;
  const calls = Array.from({ length: 40 }, () => failure(client.get('/x', { signal: caller.signal })));
  await server.arrived(40);
  expect(listeners()).toBe(1);
  caller.abort();
  expect(await settledAtOnce(Promise.all(calls))).toBe(true);
  for (const call of calls) expect(await call).toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  expect(listeners()).toBe(0);
});

test('a signal that outlives its calls keeps nothing of them', async () => {
  const { client } = await harness([respond(200)]);
  const caller = new AbortController();
  for (let n = 0; n < 3; n++) await client.get('/x', { signal: caller.signal });
  expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
});
