import { afterEach, expect, test } from 'vitest';
import { replaysafeFetch, type ReplaysafeFetch } from '../../../src/adapters/http-client/fetch.js';
import { createHttpClient } from '../../../src/client/index.js';
import { answer, reset, scriptedServer, type Reaction, type ScriptedServer } from '../../client/scripted-server.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function setUp(
  script: readonly Reaction[],
  root = '',
): Promise<{ server: ScriptedServer; url: string; fetch: ReplaysafeFetch }> {
  const server = await scriptedServer(...script);
  const url = server.url + root;
  const client = createHttpClient({ name: 'provider', baseUrl: url, retry: { baseMs: 1, capMs: 2 } });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  return { server, url, fetch: replaysafeFetch(client) };
}

test('a keyed POST is repeated with one key and the same bytes', async () => {
  const { server, url, fetch } = await setUp([
    reset,
    answer(503),
    answer(201, { 'content-type': 'application/json' }, '{"id":7}'),
  ]);
  const response = await fetch(`${url}/charges?expand=a`, {
    method: 'POST',
    headers: { 'IDEMPOTENCY-KEY': 'k', 'content-type': 'application/json' },
    body: '{"amount":1}',
  });
  expect([response.status, response.ok, response.url]).toEqual([201, true, `${url}/charges?expand=a`]);
  expect(await response.json()).toEqual({ id: 7 });
  expect(server.arrivals.map(({ method, path, key, body }) => [method, path, key, body])).toEqual(
    Array.from({ length: 3 }, () => ['POST', '/charges?expand=a', 'k', '{"amount":1}']),
  );
});

test('a write without a key is refused, unless the call says that it is sent once', async () => {
  const { server, fetch } = await setUp([reset]);
  await expect(fetch('/x', { method: 'post', body: 'a' })).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_REQUIRED' });
  expect(server.arrivals).toHaveLength(0);
  await expect(fetch('/x', { method: 'POST', body: 'a', replaysafe: { retry: false } })).rejects.toMatchObject({
    code: 'RS_CLIENT_OUTCOME_UNKNOWN',
  });
  expect(server.arrivals).toHaveLength(1);
});

test('forms, bytes, parameters and requests are sent with their content type, the same on every try', async () => {
  const form = new FormData();
  form.set('file', new Blob(['content']), 'a.txt');
  const { server, url, fetch } = await setUp([answer(503), answer(200)]);
  const bodies = [
    form,
    new URLSearchParams({ a: '1' }),
    new Uint8Array([1, 2, 3]),
    new Blob(['b'], { type: 'text/css' }),
  ];
  for (const body of bodies) await fetch('/x', { method: 'PUT', body, replaysafe: { idempotencyKey: 'k' } });
  await fetch(new Request(`${url}/y`, { method: 'POST', body: 'text', headers: { 'idempotency-key': 'k' } }));
  const [first, second, ...others] = server.arrivals;
  expect(second!.body).toBe(first!.body);
  expect(first!.body).toContain('content');
  expect(others.map(({ body }) => body)).toEqual(['a=1', '\u0001\u0002\u0003', 'b', 'text']);
});

test('retry with an empty body: a stream is refused before it is sent', async () => {
  const { server, fetch } = await setUp([answer(200)]);
  const init = { method: 'POST', body: new Blob(['x']).stream(), duplex: 'half', headers: { 'idempotency-key': 'k' } };
  await expect(fetch('/x', init as RequestInit)).rejects.toMatchObject({ code: 'RS_CLIENT_BODY_NOT_REPLAYABLE' });
  expect(server.arrivals).toHaveLength(0);
});

test.each(['http://127.0.0.1:1/x', 'https://elsewhere.test/x', '../secret', '//elsewhere.test/x'])(
  'the URL %s is not one of this system',
  async (target) => {
    const { server, fetch } = await setUp([answer(200)], '/v1');
    if (target.startsWith('//')) {
      await fetch(target);
      expect(server.arrivals.map(({ path }) => path)).toEqual(['/v1/elsewhere.test/x']);
      return;
    }
    await expect(fetch(target)).rejects.toMatchObject({ code: 'RS_CLIENT_REQUEST_INVALID' });
    expect(server.arrivals).toHaveLength(0);
  },
);

test('answers without a body, and redirects, come back as they are', async () => {
  const { server, fetch } = await setUp([answer(204), answer(302, { location: '/elsewhere' })], '/v1');
  expect(await (await fetch('/x')).text()).toBe('');
  const redirect = await fetch(new URL(`${server.url}/v1`));
  expect([redirect.status, redirect.headers.get('location')]).toEqual([302, '/elsewhere']);
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/v1/x', '/v1/']);
});

test('headers of the connection that an SDK sets are left out: the client has its own', async () => {
  const { server, fetch } = await setUp([answer(200)]);
  const headers = { 'Content-Length': '4', Connection: 'keep-alive', 'idempotency-key': 'k' };
  await fetch('/x', { method: 'POST', headers, body: 'body' });
  expect(server.arrivals.map(({ body }) => body)).toEqual(['body']);
});

test('the signal gives the call up', async () => {
  const { server, fetch } = await setUp([() => undefined]);
  const caller = new AbortController();
  const call = fetch('/x', { signal: caller.signal });
  const rejected = expect(call).rejects.toMatchObject({ code: 'RS_CLIENT_ABORTED' });
  await server.arrived(1);
  caller.abort();
  await rejected;
});
