import { afterEach, expect, test } from 'vitest';
import { createHttpClient, isOutcomeUnknown, type HttpClient, type HttpClientOptions } from '../../src/client/index.js';
import {
  closeAfterRequest,
  rawServer,
  resetAfterRequest,
  resetDuringAnswer,
  resetDuringRequest,
  respond,
  talkNonsense,
  type RawReaction,
  type RawServer,
  type RawServerOptions,
} from './raw-server.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

async function setUp(
  script: readonly RawReaction[],
  options: Partial<HttpClientOptions> & RawServerOptions = {},
): Promise<{ server: RawServer; client: HttpClient }> {
  const { resetFirst = 0, ...rest } = options;
  const server = await rawServer(script, { resetFirst });
  const client = createHttpClient({
    name: 'payments',
    baseUrl: server.url,
    retry: { baseMs: 1, capMs: 2 },
    ...rest,
  });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  return { server, client };
}

const BODY = Buffer.from(Array.from({ length: 4_096 }, (_, n) => n % 256));
const LARGE = Buffer.alloc(4 * 1024 * 1024, 'x');

const FAULTS: readonly [string, RawReaction][] = [
  ['a reset during the request', resetDuringRequest],
  ['a reset after the request', resetAfterRequest],
  ['a closed connection instead of an answer', closeAfterRequest],
  ['a reset in the middle of the answer', resetDuringAnswer],
  ['an answer that is no HTTP', talkNonsense],
  ['a 503', respond(503)],
  ['a 503 that asks for no wait', respond(503, { 'retry-after': '0' })],
  ['a 503 with a date that is over', respond(503, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' })],
  ['a 503 with a wait that cannot be read', respond(503, { 'retry-after': 'soon' })],
  ['a 429', respond(429)],
];

test.each(FAULTS)('%s: a keyed POST arrives again with the same key and the same bytes', async (_name, fault) => {
  const { server, client } = await setUp([fault, fault, respond(201)]);
  const answer = await client.post('/charges', { idempotencyKey: 'charge-1', body: BODY });
  expect(answer).toMatchObject({ status: 201, tries: 3 });
  expect(server.arrivals.map(({ key }) => key)).toEqual(['charge-1', 'charge-1', 'charge-1']);
  expect(server.arrivals.filter(({ body }) => body.equals(BODY)).length).toBeGreaterThan(fault.early ? 0 : 2);
  expect(server.arrivals[2]!.body.equals(BODY)).toBe(true);
});

test.each(FAULTS)('%s: with retry false there is exactly one arrival', async (_name, fault) => {
  const { server, client } = await setUp([fault, respond(201)]);
  const ended = await client.post('/charges', { retry: false, body: BODY }).catch((error: unknown) => error);
  expect(server.arrivals).toHaveLength(1);
  if (!(ended instanceof Error)) expect(ended).toMatchObject({ tries: 1 });
  else expect(ended).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
});

test.each(FAULTS)('%s: a GET is repeated, and its failure is never an unknown outcome', async (_name, fault) => {
  const { server, client } = await setUp([fault], { retry: { tries: 2, baseMs: 1, capMs: 2 } });
  const ended = await client.get('/charges/1').catch((error: unknown) => error);
  expect(server.arrivals).toHaveLength(2);
  if (ended instanceof Error) expect(ended).toMatchObject({ code: 'RS_CLIENT_SYSTEM_UNAVAILABLE', retryable: true });
});

test('connections that are reset before the request is read: the write may not be lost, nor be sent without a key', async () => {
  const { server, client } = await setUp([respond(201)], { resetFirst: 2 });
  expect((await client.post('/charges', { idempotencyKey: 'k', body: BODY })).status).toBe(201);
  expect(server.connections).toBe(3);
  expect(server.arrivals.map(({ key }) => key)).toEqual(['k']);
});

test('a large body that is cut half-way is sent again from its beginning', async () => {
  const { server, client } = await setUp([resetDuringRequest, respond(201)]);
  expect((await client.post('/files', { idempotencyKey: 'k', body: LARGE })).status).toBe(201);
  expect(server.arrivals[1]!.body.equals(LARGE)).toBe(true);
});

test('POST replayed on a stale keep-alive socket: one arrival, whatever the pool would like to repeat', async () => {
  const onceThenReset: RawReaction = {
    react: (socket, arrival) => {
      (arrival.nthOnConnection === 2 ? resetAfterRequest : respond(200)).react(socket, arrival);
    },
  };
  const { server, client } = await setUp([onceThenReset], { connections: 1 });
  await client.post('/warm-up', { retry: false });
  await expect(client.post('/charges', { retry: false })).rejects.toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  await client.get('/warm-up');
  await expect(client.get('/balance', { retry: false })).rejects.toMatchObject({
    code: 'RS_CLIENT_SYSTEM_UNAVAILABLE',
  });
  expect(server.arrivals.map(({ path }) => path)).toEqual(['/warm-up', '/charges', '/warm-up', '/balance']);
});

test('a connection that the server closes behind its answer is not written to', async () => {
  const answerAndClose: RawReaction = {
    react: (socket, arrival) => {
      respond(200).react(socket, arrival);
      socket.end();
    },
  };
  const { server, client } = await setUp([answerAndClose], { connections: 1 });
  for (let n = 0; n < 5; n++) expect((await client.post('/charges', { retry: false })).status).toBe(200);
  expect(server.arrivals).toHaveLength(5);
});

test('a write whose first try may have been executed is not reported as one that was not', async () => {
  const { server, client } = await setUp([resetAfterRequest]);
  const first = server.arrived(1).then(() => server.close());
  const ended: unknown = await client.post('/charges', { idempotencyKey: 'k-1' }).catch((error: unknown) => error);
  await first;
  expect(ended).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN', retryable: true });
  expect(isOutcomeUnknown(ended) && ended.idempotencyKey).toBe('k-1');
  expect(JSON.stringify(ended)).not.toContain('k-1');
});

test('a lost answer: the same key gets the stored one', async () => {
  const stored = respond(201, { 'Idempotent-Replayed': 'true' }, '{"chargeId":"c-1"}');
  const { server, client } = await setUp([resetDuringAnswer, stored]);
  const answer = await client.post('/charges', { idempotencyKey: 'k' });
  expect(answer).toMatchObject({ status: 201, replayed: true, tries: 2 });
  expect(answer.json()).toEqual({ chargeId: 'c-1' });
  expect(new Set(server.arrivals.map(({ key }) => key)).size).toBe(1);
});

const problem = (status: number, kind: string) =>
  respond(
    status,
    { 'content-type': 'application/problem+json' },
    JSON.stringify({ type: `https://x/${kind}`, retryable: false }),
  );
test.each([
  ['a withdrawal whose owner died at the remote call', problem(409, 'idempotency-outcome-unknown')],
  ['a late retry of an expired key', problem(409, 'idempotency-key-expired')],
  ['a key that another request has', problem(422, 'idempotency-key-reused')],
  ['a stored failure', respond(500, { 'idempotent-replayed': 'true' })],
])('%s is not repeated', async (_name, reaction) => {
  const { server, client } = await setUp([reaction]);
  const answer = await client.post('/withdrawals', { idempotencyKey: 'k' });
  expect(() => answer.expect()).toThrow(
    expect.objectContaining({ code: 'RS_CLIENT_ANSWER_REFUSED', retryable: false }),
  );
  expect(server.arrivals).toHaveLength(1);
});

test('an answer in several pieces, cut inside a character, is put together', async () => {
  const text = '{"name":"Žluťoučký kůň"}';
  const bytes = Buffer.from(text);
  const inPieces: RawReaction = {
    react: (socket) => {
      socket.write(`HTTP/1.1 200 X\r\ncontent-length: ${bytes.length}\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\n`);
      const next = (at: number): void => {
        if (at < bytes.length) socket.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1));
      };
      next(0);
    },
  };
  const { client } = await setUp([inPieces]);
  const answer = await client.get('/x');
  expect(answer.text()).toBe(text);
  expect(Buffer.from(answer.body).equals(bytes)).toBe(true);
  expect(answer.body.buffer.byteLength).toBe(bytes.length);
  expect(answer.headers['set-cookie']).toBe('a=1, b=2');
});
