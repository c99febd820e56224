import http from 'node:http';
import { connect } from 'node:net';
import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { withIdempotency, type NodeHandler, type NodeRouteOptions } from '../../../src/adapters/http/node.js';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import { hasCode } from '../../../src/errors.js';
import { createIdempotency, type Idempotency } from '../../../src/idempotency/index.js';
import { insertOrder, json, listen, openStore, send, type Client, type Store } from './harness.js';
import { expectProblem } from './scenario.js';

let store: Store;
let server: http.Server | undefined;
let idempotency: Idempotency<Client>;
let served: Promise<void>[] = [];

beforeAll(async () => {
  store = await openStore();
  idempotency = createIdempotency<Client>({ sql: fromPg(store.pool), scope: 'single-tenant' });
});
afterEach(() => {
  served = [];
  server?.closeAllConnections();
  server?.close();
});
afterAll(() => store.drop());

async function serve(handler: NodeHandler<Client>, options?: NodeRouteOptions, before?: http.RequestListener) {
  const listener = withIdempotency(idempotency, handler, options);
  server = http.createServer((request, response) => {
    before?.(request, response);
    served.push(listener(request, response));
  });
  return listen(server);
}

test('a body that is not JSON is a 400 of its own, and leaves no record', async () => {
  const url = await serve(async (request) => json(201, request.json()));
  expectProblem(await send(url, { key: 'not-json', body: '{"a":' }), 400, 'idempotency-body-invalid', false);
  expect((await send(url, { key: 'not-json', body: '{"a":1}' })).json).toEqual({ a: 1 });
});

test('an error of the handler tells the client nothing, and the log everything', async () => {
  const logged: object[] = [];
  const ignore = () => undefined;
  const logger = { debug: ignore, info: ignore, warn: ignore, error: (fields: object) => logged.push(fields) };
  const error = new Error('password of the database is 123');
  const url = await serve(async () => Promise.reject(error), { logger });
  const sent = await send(url, { key: 'boom', body: {} });
  expect([sent.status, sent.text.includes('password')]).toEqual([500, false]);
  expect(logged).toEqual([{ err: error }]);
});

test('an error can be turned into an answer; what it answers is not stored', async () => {
  let tries = 0;
  const url = await serve(
    async (request, context) => {
      await insertOrder(context, 'turned');
      tries += 1;
      throw new Error(`try ${tries} of ${String(request.method)}`);
    },
    { onError: (error) => json(418, { said: (error as Error).message }) },
  );
  expect((await send(url, { key: 'turned', body: {} })).json).toEqual({ said: 'try 1 of POST' });
  expect((await send(url, { key: 'turned', body: {} })).json).toEqual({ said: 'try 2 of POST' });
  expect(await store.orders('turned')).toBe(0);
});

test('an error handler that throws does not end the process', async () => {
  const url = await serve(async () => Promise.reject(new Error('one')), {
    onError: () => {
      throw new Error('two');
    },
  });
  expect((await send(url, { key: 'throws', body: {} })).status).toBe(500);
});

test('a header that Node refuses to send does not end the process', async () => {
  const url = await serve(async () => json(201, {}, { 'x-bad': 'a\nb' }));
  expect((await send(url, { key: 'bad-header', body: {} })).status).toBe(500);
});

test('a request that did not arrive whole is never executed', async () => {
  let ran = false;
  const url = await serve(async () => {
    ran = true;
    return json(201, {});
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const received = once(server!, 'request');
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: cut\r\nContent-Length: 10\r\n\r\n{"a"');
  const [request] = (await received) as [http.IncomingMessage];
  const closed = new Promise((resolve) => request.on('error', () => undefined).on('close', resolve));
  socket.destroy();
  await closed;
  await Promise.all(served);
  expect(ran).toBe(false);
});

test('headers that were set before stay, on the first answer and on the replay', async () => {
  const url = await serve(
    async () => json(201, {}),
    undefined,
    (_request, response) => {
      response.setHeader('access-control-allow-origin', '*');
    },
  );
  for (let i = 0; i < 2; i++) {
    expect((await send(url, { key: 'cors', body: {} })).headers['access-control-allow-origin']).toBe('*');
  }
});

test('who the client is may be found out with a database, and a refusal stops the request before its body is read', async () => {
  let ran = false;
  const url = await serve(
    async () => {
      ran = true;
      return json(201, {});
    },
    {
      principal: async () => Promise.reject(new Error('no such user')),
      onError: () => json(401, {}),
    },
  );
  expect((await send(url, { key: 'who', body: {} })).status).toBe(401);
  expect(ran).toBe(false);
});

test('a proxy that sends the whole URL names the same request', async () => {
  let runs = 0;
  const url = await serve(async () => json(201, { runs: (runs += 1) }));
  const { port } = new URL(url);
  const first = await send(`${url}/orders?a=1`, { key: 'absolute', body: {} });
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(
    `POST http://shop.example/orders?a=1 HTTP/1.1\r\nHost: x\r\nIdempotency-Key: absolute\r\n` +
      `Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
  );
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  expect(answer).toMatch(/^HTTP\/1\.1 201 /);
  expect(answer.toLowerCase()).toContain('idempotent-replayed: true');
  expect([first.status, runs]).toEqual([201, 1]);
});

test('options are read at the door', () => {
  const handler: NodeHandler<Client> = async () => json(200, {});
  const given = { maxRequestByte: 1 } as NodeRouteOptions;
  expect(() => withIdempotency(idempotency, handler, given)).toThrow(/did you mean "maxRequestBytes"/);
  const scopeless = { sql: fromPg(store.pool) } as unknown as Parameters<typeof createIdempotency>[0];
  try {
    createIdempotency(scopeless);
    expect.unreachable();
  } catch (error) {
    expect(hasCode(error, 'RS_OPTION_REQUIRED')).toBe(true);
    expect(String(error)).toMatch(/scope/);
  }
});
