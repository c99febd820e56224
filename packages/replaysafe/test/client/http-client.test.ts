import { afterEach, expect, test } from 'vitest';
import { createHttpClient, type HttpClient, type HttpClientOptions } from '../../src/client/index.js';
import { onEvent } from '../../src/events.js';
import { answer, hang, reset, scriptedServer, type Reaction, type ScriptedServer } from './scripted-server.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function setUp(
  script: readonly Reaction[],
  options: Partial<HttpClientOptions> = {},
): Promise<{ server: ScriptedServer; client: HttpClient }> {
  const server = await scriptedServer(...script);
  const client = createHttpClient({
    name: 'payments',
    baseUrl: server.url,
    retry: { baseMs: 1, capMs: 2 },
    ...options,
  });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  return { server, client };
}

test('a keyed POST is sent with one key and the same bytes on every try', async () => {
  const { server, client } = await setUp([answer(503), reset, answer(201, {}, 'done')]);
  const response = await client.post('/charges', { idempotencyKey: 'charge-1', json: { amountMinor: 1990 } });
  expect(response.status).toBe(201);
  expect(response.tries).toBe(3);
  expect(server.arrivals.map(({ key, body }) => [key, body])).toEqual(
    Array.from({ length: 3 }, () => ['charge-1', '{"amountMinor":1990}']),
  );
});

test.each(['post', 'put', 'patch', 'delete'] as const)(
  'R-SHUT-IDEM-X1: a keyless %s is refused before it is sent',
  async (method) => {
    const { server, client } = await setUp([answer(200)]);
    await expect(client[method]('/charges', { json: {} })).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_REQUIRED' });
    expect(server.arrivals).toHaveLength(0);
  },
);

test('POST and PATCH cannot be declared repeatable, PUT and DELETE can and are then repeated', async () => {
  const { server, client } = await setUp([answer(503), answer(204)]);
  await expect(client.post('/x', { repeatable: true })).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_REQUIRED' });
  await expect(client.patch('/x', { repeatable: true })).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_REQUIRED' });
  expect((await client.put('/x', { repeatable: true })).status).toBe(204);
  expect(server.arrivals.map(({ method }) => method)).toEqual(['PUT', 'PUT']);
});

test('POST duplicated on ECONNRESET: with retry false it arrives exactly once and the outcome is unknown', async () => {
  const { server, client } = await setUp([reset, answer(200)]);
  await expect(client.post('/charges', { retry: false, json: {} })).rejects.toMatchObject({
    code: 'RS_CLIENT_OUTCOME_UNKNOWN',
    retryable: true,
  });
  expect(server.arrivals).toHaveLength(1);
});

test('retry false is one arrival for keyed writes and for reads too', async () => {
  const { server, client } = await setUp([answer(503)]);
  await client.post('/x', { idempotencyKey: 'k', retry: false });
  await client.get('/x', { retry: false });
  expect(server.arrivals.map(({ method }) => method)).toEqual(['POST', 'GET']);
});

test('POST replayed on a stale keep-alive socket: retry false is one arrival there too', async () => {
  const resetSecond: Reaction = (response, arrival) => {
    (arrival.nthOnConnection === 2 ? reset : answer(200))(response, arrival);
  };
  const { server, client } = await setUp([resetSecond], { connections: 1 });
  await client.post('/warm-up', { retry: false });
  await expect(client.post('/charges', { retry: false })).rejects.toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/warm-up', '/charges']);
});

test('the key of the caller wins in any letter case, and two different ones are refused', async () => {
  const { server, client } = await setUp([answer(503), answer(200)]);
  await client.post('/x', { headers: { 'IDEMPOTENCY-Key': 'mine' } });
  expect(server.arrivals.map(({ key }) => key)).toEqual(['mine', 'mine']);
  await expect(client.post('/x', { idempotencyKey: 'a', headers: { 'idempotency-key': 'b' } })).rejects.toMatchObject({
    code: 'RS_CLIENT_KEY_INVALID',
  });
});

test.each(['', 'with blank', 'ümlaut', 'x'.repeat(256), 'line\nbreak', 'a,b', 'a"b', 'a\\b'])(
  'the key %j is refused',
  async (idempotencyKey) => {
    const { client } = await setUp([answer(200)]);
    await expect(client.post('/x', { idempotencyKey })).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_INVALID' });
  },
);

const PROBLEM = { 'content-type': 'application/problem+json' };
test.each([
  ['400', answer(400), 1],
  ['404', answer(404), 1],
  ['422', answer(422), 1],
  ['408', answer(408), 3],
  ['425', answer(425), 3],
  ['429', answer(429), 3],
  ['500', answer(500), 3],
  ['502', answer(502), 3],
  ['504', answer(504), 3],
  ['409 of an unknown kind', answer(409), 1],
  ['409 in progress', answer(409, PROBLEM, '{"type":"https://x.test/idempotency-in-progress","retryable":true}'), 3],
  ['503 that says it is not retryable', answer(503, PROBLEM, '{"retryable":false}'), 1],
  ['a replayed 500', answer(500, { 'idempotent-replayed': 'true' }), 1],
] as const)('%s is returned after %i tries', async (_name, reaction, tries) => {
  const { server, client } = await setUp([reaction]);
  const response = await client.post('/x', { idempotencyKey: 'k' });
  expect(response.tries).toBe(tries);
  expect(server.arrivals).toHaveLength(tries);
});

test.each([
  [answer(201), undefined],
  [answer(204), undefined],
  [answer(503), 'RS_CLIENT_ANSWER_TEMPORARY'],
  [answer(409, PROBLEM, '{"type":"x/idempotency-in-progress"}'), 'RS_CLIENT_ANSWER_TEMPORARY'],
  [answer(409), 'RS_CLIENT_ANSWER_REFUSED'],
  [answer(422), 'RS_CLIENT_ANSWER_REFUSED'],
  [answer(500, { 'idempotent-replayed': 'true' }), 'RS_CLIENT_ANSWER_REFUSED'],
] as const)(
  'an answer that is not the expected one is an error that tells whether to ask again (%#)',
  async (reaction, code) => {
    const { client } = await setUp([reaction], { retry: { tries: 1 } });
    const response = await client.post('/x', { idempotencyKey: 'k' });
    if (code === undefined) expect(response.expect()).toBe(response);
    else {
      const retryable = code === 'RS_CLIENT_ANSWER_TEMPORARY';
      expect(() => response.expect()).toThrow(expect.objectContaining({ code, retryable }));
    }
    expect(response.expect(response.status)).toBe(response);
    expect(() => response.expect(999)).toThrow();
  },
);

test('nothing listens: nothing was executed, and it is tried again', async () => {
  const closed = await scriptedServer(answer(200));
  await closed.close();
  const client = createHttpClient({ name: 'gone', baseUrl: closed.url, retry: { tries: 2, baseMs: 1 } });
  const failures: number[] = [];
  const { unsubscribe } = onEvent('client.failed', ({ attempt }) => failures.push(attempt));
  await expect(client.post('/x', { idempotencyKey: 'k' })).rejects.toMatchObject({
    code: 'RS_CLIENT_SYSTEM_UNAVAILABLE',
  });
  unsubscribe();
  expect(failures).toEqual([1, 2]);
  await client.stop();
});

test('the stop ends a back-off in the same tick, while a running try may finish', async () => {
  const stopping = new AbortController();
  const signals = { stopping: stopping.signal, deadline: new AbortController().signal, budgetMs: 1_000 };
  const closed = await scriptedServer(answer(200));
  await closed.close();
  const waiting = createHttpClient({
    name: 'gone',
    baseUrl: closed.url,
    retry: { baseMs: 60_000, capMs: 60_000 },
    timeouts: { totalMs: 600_000 },
    random: { next: () => 0.9 },
    signals,
  });
  const backedOff = new Promise<void>((resolve) => {
    const subscription = onEvent('client.backed-off', () => {
      subscription.unsubscribe();
      resolve();
    });
  });
  const call = waiting.post('/x', { idempotencyKey: 'k' });
  const running = await setUp(
    [
      (response, arrival) =>
        setImmediate(() => {
          answer(201)(response, arrival);
        }),
    ],
    { signals },
  );
  const slow = running.client.post('/x', { idempotencyKey: 'k' });
  await backedOff;
  await running.server.arrived(1);
  stopping.abort();
  await expect(call).rejects.toMatchObject({ code: 'RS_CLIENT_STOPPED' });
  expect((await slow).status).toBe(201);
  await waiting.stop();
});

test('an answer larger than allowed is not read into memory', async () => {
  const { server, client } = await setUp([answer(200, {}, 'x'.repeat(5_000))], { maxResponseBytes: 1_000 });
  await expect(client.get('/x')).rejects.toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE' });
  // It would be as large the next time.
  expect(server.arrivals).toHaveLength(1);
});

test.each(['', 'a', '/a b', '/ü', '/a\nb', 5, undefined])('the path %j is refused before any try', async (path) => {
  const { server, client } = await setUp([answer(200)]);
  const call = client.post(path as string, { idempotencyKey: 'k' });
  await expect(call).rejects.toMatchObject({ code: 'RS_CLIENT_REQUEST_INVALID', retryable: false });
  expect(server.arrivals).toHaveLength(0);
});

test.each([{ 'bad name': 'x' }, { x: 'a\r\nb' }, { x: 5 as unknown as string }])(
  'the headers %j are refused before any try',
  async (headers) => {
    const { server, client } = await setUp([answer(200)]);
    await expect(client.get('/x', { headers })).rejects.toMatchObject({ code: 'RS_CLIENT_REQUEST_INVALID' });
    expect(server.arrivals).toHaveLength(0);
  },
);

test('an unknown option of a call is refused: a mistyped json would be sent as nothing', async () => {
  const { client } = await setUp([answer(200)]);
  const options = { jsn: {}, idempotencyKey: 'k' } as object;
  await expect(client.post('/x', options)).rejects.toMatchObject({ code: 'RS_OPTION_UNKNOWN' });
});

test('a call that its caller gives up is not a failure of the remote system', async () => {
  const { server, client } = await setUp([hang]);
  const caller = new AbortController();
  const read = client.get('/x', { signal: caller.signal });
  const write = client.post('/x', { idempotencyKey: 'k', signal: caller.signal });
  await server.arrived(2);
  caller.abort();
  await expect(read).rejects.toMatchObject({ code: 'RS_CLIENT_ABORTED', retryable: false });
  await expect(write).rejects.toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  await expect(client.get('/x', { signal: caller.signal })).rejects.toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  expect(server.arrivals).toHaveLength(2);
});

test('a client that is stopped sends nothing', async () => {
  const { client } = await setUp([answer(200)]);
  await client.stop();
  await expect(client.get('/x')).rejects.toMatchObject({ code: 'RS_CLIENT_STOPPED' });
});

test('bodies that cannot be sent twice are refused', async () => {
  const { client } = await setUp([answer(200)]);
  const stream = new ReadableStream() as unknown as string;
  await expect(client.post('/x', { idempotencyKey: 'k', body: stream })).rejects.toMatchObject({
    code: 'RS_CLIENT_BODY_NOT_REPLAYABLE',
  });
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  for (const json of [() => 1, circle, 1n]) {
    await expect(client.post('/x', { idempotencyKey: 'k', json })).rejects.toMatchObject({
      code: 'RS_CLIENT_BODY_NOT_REPLAYABLE',
    });
  }
  await expect(client.get('/x', { headers: 'x' as never })).rejects.toMatchObject({
    code: 'RS_CLIENT_REQUEST_INVALID',
  });
});

test('bytes that the caller changes between two tries are sent unchanged', async () => {
  const body = new TextEncoder().encode('amount=1');
  const change: Reaction = (response, arrival) => {
    body.fill(0x39);
    answer(503)(response, arrival);
  };
  const { server, client } = await setUp([change, answer(200)]);
  await client.post('/x', { idempotencyKey: 'k', body });
  expect(server.arrivals.map((arrival) => arrival.body)).toEqual(['amount=1', 'amount=1']);
});

test('stop waits for a running call, and ends it when its deadline comes', async () => {
  const { server, client } = await setUp([hang]);
  const call = client.get('/x').catch((error: unknown) => error);
  await server.arrived(1);
  const deadline = new AbortController();
  const stopped = client.stop(deadline.signal);
  deadline.abort();
  await stopped;
  expect(await call).toMatchObject({ code: 'RS_CLIENT_STOPPED' });
});

test.each([
  [{ baseUrl: 'ftp://x' }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', retries: 3 }, 'RS_OPTION_UNKNOWN'],
  [{ baseUrl: 'http://x', retry: { tires: 3 } }, 'RS_OPTION_UNKNOWN'],
  [{ baseUrl: 'http://x', retry: { tries: 6 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', retry: { baseMs: 6_000 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', timeouts: { totalMs: '5' } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', timeouts: { connectMs: 500, headersMs: 500 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', timeouts: { headersMs: 900, bodyMs: 800 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', timeouts: { bodyMs: 900, totalMs: 900 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', breaker: { window: 10 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', breaker: { failurePercent: 0 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', connections: 5, bulkhead: { concurrent: 6 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://user:secret@x' }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', headers: { 'Idempotency-Key': 'one for all' } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', headers: { a: 5 } }, 'RS_OPTION_INVALID'],
  [{ baseUrl: 'http://x', signals: {} }, 'RS_OPTION_INVALID'],
  [{}, 'RS_OPTION_REQUIRED'],
])('options %j are refused with %s', (options, code) => {
  expect(() => createHttpClient({ name: 'x', ...options } as HttpClientOptions)).toThrow(
    expect.objectContaining({ code }),
  );
});
