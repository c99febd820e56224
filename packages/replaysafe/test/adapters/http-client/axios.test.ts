import axios, { type AxiosInstance, type CreateAxiosDefaults } from 'axios';
import { afterEach, expect, test } from 'vitest';
import { axiosAdapter } from '../../../src/adapters/http-client/axios.js';
import { createHttpClient } from '../../../src/client/index.js';
import { answer, reset, scriptedServer, type Reaction, type ScriptedServer } from '../../client/scripted-server.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function setUp(
  script: readonly Reaction[],
  defaults: CreateAxiosDefaults = {},
): Promise<{ server: ScriptedServer; api: AxiosInstance }> {
  const server = await scriptedServer(...script);
  const client = createHttpClient({ name: 'provider', baseUrl: `${server.url}/v1`, retry: { baseMs: 1, capMs: 2 } });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  return { server, api: axios.create({ adapter: axiosAdapter(client), ...defaults }) };
}

const KEYED = { headers: { 'Idempotency-Key': 'k' } };

test('three tries with three keys: here it is one key, and the same bytes', async () => {
  const { server, api } = await setUp([
    reset,
    answer(503),
    answer(201, { 'content-type': 'application/json' }, '{"id":7}'),
  ]);
  let made = 0;
  api.interceptors.request.use((config) => {
    config.headers.set('Idempotency-Key', `k-${++made}`);
    return config;
  });
  const response = await api.post<{ id: number }>('/charges', { amount: 1 });
  expect([response.status, response.data.id]).toEqual([201, 7]);
  expect(response.headers['content-type']).toBe('application/json');
  expect(server.arrivals.map(({ path, key, body }) => [path, key, body])).toEqual(
    Array.from({ length: 3 }, () => ['/v1/charges', 'k-1', '{"amount":1}']),
  );
});

test('POST duplicated on ECONNRESET: without a key it is refused, with retry false it arrives once', async () => {
  const { server, api } = await setUp([reset]);
  await expect(api.post('/charges', {})).rejects.toMatchObject({ code: 'RS_CLIENT_KEY_REQUIRED', isAxiosError: true });
  expect(server.arrivals).toHaveLength(0);
  const once = { replaysafe: { retry: false } } as object;
  await expect(api.post('/charges', {}, once)).rejects.toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  expect(server.arrivals).toHaveLength(1);
});

test('an answer that validateStatus does not take is an axios error with that answer, read as usual', async () => {
  const { api } = await setUp([answer(422, { 'content-type': 'application/json' }, '{"reason":"no funds"}')]);
  const error: unknown = await api.post('/charges', {}, KEYED).catch((thrown: unknown) => thrown);
  expect(axios.isAxiosError(error)).toBe(true);
  expect(error).toMatchObject({
    code: 'ERR_BAD_REQUEST',
    status: 422,
    response: { status: 422, data: { reason: 'no funds' } },
    config: { url: '/charges' },
  });
  // The key is in the configuration, and must not be in a log because the error is.
  expect(Object.keys(error as object)).not.toContain('config');
  expect((await api.post('/charges', {}, { ...KEYED, validateStatus: () => true })).status).toBe(422);
});

test('base URL, parameters and their serializer are as axios has them', async () => {
  const { server, api } = await setUp([answer(200)]);
  const params = { a: [1, 2], b: { c: 'x y' }, d: new Date(0), e: null, f: undefined, g: true };
  const expected = axios.getUri({ url: '/v1/list', params });
  await api.get('/list', { params });
  await api.get('list?x=1', { params: new URLSearchParams({ y: '2' }), baseURL: `${server.url}/v1/` });
  await api.get(`${server.url}/v1`, { params: { z: 3 }, paramsSerializer: { serialize: () => 'own=1' } });
  const query = (path: string) => [...new URL(path, 'http://x').searchParams];
  expect(query(server.arrivals[0]!.path)).toEqual(query(expected));
  expect(server.arrivals.slice(1).map(({ path }) => path)).toEqual(['/v1/list?x=1&y=2', '/v1/?own=1']);
});

test('bytes come back as bytes', async () => {
  const { api } = await setUp([answer(200, {}, 'bytes')]);
  const { data } = await api.get<Buffer>('/file', { responseType: 'arraybuffer' });
  expect(Buffer.from('bytes').equals(data)).toBe(true);
});

test.each([
  ['a URL of another system', { url: 'https://elsewhere.test/x' }],
  ['a stream as the answer', { url: '/x', responseType: 'stream' }],
  ['a cancel token', { url: '/x', cancelToken: axios.CancelToken.source().token }],
] as const)('%s is refused', async (_name, config) => {
  const { server, api } = await setUp([answer(200)]);
  await expect(api.request(config)).rejects.toMatchObject({ code: 'RS_CLIENT_REQUEST_INVALID' });
  expect(server.arrivals).toHaveLength(0);
});

test('retry with an empty body: a stream is refused before it is sent', async () => {
  const { server, api } = await setUp([answer(200)]);
  await expect(api.post('/x', new Blob(['x']).stream(), KEYED)).rejects.toMatchObject({
    code: 'RS_CLIENT_BODY_NOT_REPLAYABLE',
  });
  expect(server.arrivals).toHaveLength(0);
});

test('timeout ends the whole call, and the signal cancels it as axios does', async () => {
  const { server, api } = await setUp([() => undefined]);
  const caller = new AbortController();
  const call = api.get('/x', { signal: caller.signal }).catch((error: unknown) => error);
  await server.arrived(1);
  caller.abort();
  expect(axios.isCancel(await call)).toBe(true);
  await expect(api.get('/x', { timeout: 40 })).rejects.toMatchObject({ code: 'RS_CLIENT_TIMEOUT', isAxiosError: true });
});
