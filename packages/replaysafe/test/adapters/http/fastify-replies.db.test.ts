import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { idempotencyPlugin } from '../../../src/adapters/http/fastify.js';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import { createIdempotency, type IdempotencyContext, type IdempotencyOptions } from '../../../src/idempotency/index.js';
import { waitForEvent } from '../../../src/testing/index.js';
import { Gate, insertOrder, openStore, send, type Client, type Sent, type Store } from './harness.js';
import { expectProblem, expectReplay } from './scenario.js';
import { listenOn } from './start-fastify.js';

let store: Store;
let app: FastifyInstance | undefined;
let count = 0;
const newName = (): string => `reply-${(count += 1)}`;

beforeAll(async () => {
  store = await openStore();
});
afterEach(() => app?.close());
afterAll(() => store.drop());

type Handler = (this: FastifyInstance, request: FastifyRequest, reply: FastifyReply) => unknown;
const contextOf = (request: FastifyRequest) => request.idempotency as IdempotencyContext<Client>;
const order = (request: FastifyRequest) => insertOrder(contextOf(request), String(request.headers['x-name']));

async function newApp(options: Partial<IdempotencyOptions<Client>> = {}): Promise<FastifyInstance> {
  app = fastify({ forceCloseConnections: true });
  const idempotency = createIdempotency<Client>({ sql: fromPg(store.pool), scope: 'single-tenant', ...options });
  await app.register(idempotencyPlugin, { idempotency });
  return app;
}

const post = (url: string, name: string, body: unknown = {}, headers = {}): Promise<Sent> =>
  send(`${url}/orders`, { key: name, body, headers: { 'x-name': name, ...headers } });

async function serve(handler: Handler, options: Partial<IdempotencyOptions<Client>> = {}): Promise<string> {
  const made = await newApp(options);
  made.post('/orders', { config: { idempotency: 'required' } }, handler);
  return (await listenOn(made)).url;
}

describe('each way to reply in Fastify is held until COMMIT and replayed', () => {
  const styles: [string, Handler][] = [
    ['a returned object', async (request, reply) => (await order(request), reply.code(201), { done: true })],
    ['a returned string', async (request, reply) => (await order(request), reply.code(201), 'done')],
    ['reply.send and return reply', async (request, reply) => (await order(request), reply.code(201).send({ a: 1 }))],
    [
      'reply.send without returning it',
      async (request, reply) => {
        await order(request);
        void reply.code(201).send({ a: 1 });
      },
    ],
    [
      'a callback',
      (request, reply) => {
        order(request).then(
          (id) => reply.code(201).send({ id }),
          (error: unknown) => reply.send(error),
        );
      },
    ],
    ['nothing at all', async (request, reply) => (await order(request), reply.code(201), undefined)],
    ['a buffer', async (request, reply) => (await order(request), reply.code(201).send(Buffer.from([0, 1, 255])))],
    ['a redirect', async (request, reply) => (await order(request), reply.redirect('/there', 303))],
  ];
  test.each(styles)('%s', async (_, handler) => {
    const name = newName();
    const url = await serve(handler);
    const first = await post(url, name);
    expect(first.status).toBeLessThan(400);
    expectReplay(await post(url, name), first);
    expect(await store.orders(name)).toBe(1);
  });

  test('a second reply does not overtake the first, which is held', async () => {
    const name = newName();
    const url = await serve(async (request, reply) => {
      await order(request);
      void reply.code(201).send({ reply: 1 });
      void reply.code(202).send({ reply: 2 });
      return reply;
    });
    const first = await post(url, name);
    expect(first.json).toEqual({ reply: 1 });
    expectReplay(await post(url, name), { ...first, status: 201 });
  });
});

describe("errors take Fastify's own path, after the rollback", () => {
  const failing: [string, Handler, number][] = [
    [
      'thrown',
      async (request) => Promise.reject(Object.assign(new Error('boom'), { order: await order(request) })),
      500,
    ],
    ['sent', async (request, reply) => (await order(request), reply.send(new Error('boom'))), 500],
    [
      'thrown with a status',
      async (request) => {
        await order(request);
        throw Object.assign(new Error('no such customer'), { statusCode: 404 });
      },
      404,
    ],
    [
      'thrown at once',
      () => {
        throw new Error('boom');
      },
      500,
    ],
  ];
  test.each(failing)('%s', async (_, handler, status) => {
    const name = newName();
    let fail = true;
    const url = await serve(function (request, reply) {
      if (fail) return handler.call(this, request, reply);
      return order(request).then(() => ({ done: true }));
    });
    const first = await post(url, name);
    expect([first.status, first.json.statusCode]).toEqual([status, status]);
    expect(await store.orders(name)).toBe(0);
    fail = false;
    expect((await post(url, name)).json).toEqual({ done: true });
    expect(await store.orders(name)).toBe(1);
  });

  test('an error handler of the application answers, and nothing is stored', async () => {
    const name = newName();
    const made = await newApp();
    made.setErrorHandler((_error, _request, reply) => reply.code(422).send({ mine: true }));
    made.post('/orders', { config: { idempotency: 'required' } }, async (request) => {
      await order(request);
      throw new Error('boom');
    });
    const { url } = await listenOn(made);
    expect((await post(url, name)).json).toEqual({ mine: true });
    expect(await store.orders(name)).toBe(0);
    expect(await store.records()).not.toContainEqual(expect.objectContaining({ state: 'running' }));
  });

  test("a time-out of Fastify's is not overtaken by a handler that goes on", async () => {
    const name = newName();
    const gate = new Gate();
    const made = await newApp();
    const config = { idempotency: 'required' as const };
    made.post('/orders', { config, handlerTimeout: 300 }, async (request) => {
      await order(request);
      await gate.pass();
      return { done: true };
    });
    const { url } = await listenOn(made);
    // Without a body: once that has been read, Fastify 5.12 forgets its time-out.
    const timedOut = await send(`${url}/orders`, { key: name, headers: { 'x-name': name } });
    expect(timedOut.json).toMatchObject({ statusCode: 503, code: 'FST_ERR_HANDLER_TIMEOUT' });
    gate.open();
    expect(await store.orders(name)).toBe(0);
  });
});

describe('replies that cannot be looked into', () => {
  const file = new URL(import.meta.url);
  const streams: [string, Handler][] = [
    ['a stream', async (request, reply) => (await order(request), reply.code(201).send(Readable.from(['a', 'b'])))],
    ['a file', async (request, reply) => (await order(request), reply.code(201).send(createReadStream(file)))],
    ['a web stream', async (request, reply) => (await order(request), reply.code(201).send(new Blob(['ab']).stream()))],
    ['a fetch Response', async (request) => (await order(request), new Response('ab', { status: 201 }))],
    [
      "res.end behind Fastify's back",
      async (request, reply) => {
        await order(request);
        reply.hijack();
        reply.raw.writeHead(201).end('ab');
      },
    ],
  ];
  test.each(streams)('%s is sent once and never executed again', async (_, handler) => {
    const name = newName();
    const url = await serve(handler);
    const executed = waitForEvent('idempotency.executed');
    const first = await post(url, name);
    expect(first.status).toBe(201);
    expect(first.bytes.byteLength).toBeGreaterThan(1);
    await executed;
    expectProblem(await post(url, name), 409, 'idempotency-response-unavailable', false);
    expect(await store.orders(name)).toBe(1);
  });

  test('a stream that fails while it is held is an error, not the end of the process', async () => {
    const name = newName();
    const url = await serve(async (request, reply) => {
      await order(request);
      return reply.code(201).send(createReadStream('/nowhere/at/all'));
    });
    expect((await post(url, name)).status).toBe(500);
  });

  test('a Response with a 5xx status is rolled back', async () => {
    const name = newName();
    const url = await serve(async (request) => (await order(request), new Response('no', { status: 502 })));
    expect((await post(url, name)).status).toBe(502);
    expect(await store.orders(name)).toBe(0);
  });
});

describe('hooks and routes', () => {
  test('what compression makes of it is not stored, and each client gets its own', async () => {
    const name = newName();
    const made = await newApp();
    // As compression plugins do it: a hook of the route, added in onRoute.
    made.addHook('onRoute', (route) => {
      route.onSend = [
        ...[route.onSend ?? []].flat(),
        async (request, reply, payload) => {
          if (request.headers['accept-encoding'] !== 'gzip') return payload;
          void reply.header('content-encoding', 'gzip');
          return gzipSync(payload as string);
        },
      ];
    });
    made.post('/orders', { config: { idempotency: 'required' } }, async (request) => ({ id: await order(request) }));
    const { url } = await listenOn(made);
    const zipped = await post(url, name, {}, { 'accept-encoding': 'gzip' });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    const plain = await post(url, name);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.json).toHaveProperty('id');
    expect((await post(url, name, {}, { 'accept-encoding': 'gzip' })).bytes.equals(zipped.bytes)).toBe(true);
  });

  test('hooks that change a reply do not change the replay once more; headers of earlier hooks are fresh', async () => {
    const name = newName();
    const made = await newApp();
    let requests = 0;
    made.addHook('onRequest', async (_request, reply) => void reply.header('x-request', `${(requests += 1)}`));
    made.addHook('onSend', async (_request, _reply, payload) => `{"wrapped":${String(payload)}}`);
    made.post('/orders', { config: { idempotency: 'required' } }, async (request) => ({ id: await order(request) }));
    const { url } = await listenOn(made);
    const first = await post(url, name);
    expect(first.text).toMatch(/^\{"wrapped":\{"id":"\d+"\}\}$/);
    const replay = await post(url, name);
    expectReplay(replay, first);
    expect([first.headers['x-request'], replay.headers['x-request']]).toEqual(['1', '2']);
  });

  test('a user who was locked out meanwhile is not served a replay, wherever the route authenticates', async () => {
    const name = newName();
    const made = await newApp();
    let allowed = true;
    const preHandler = async (_request: FastifyRequest, reply: FastifyReply) =>
      allowed ? undefined : reply.code(403).send({ forbidden: true });
    made.post('/orders', { config: { idempotency: 'required' }, preHandler }, async (request) => order(request));
    const { url } = await listenOn(made);
    expect((await post(url, name)).status).toBe(200);
    allowed = false;
    expect((await post(url, name)).json).toEqual({ forbidden: true });
  });

  test('a body that fails validation leaves no record, so that the corrected one is accepted', async () => {
    const name = newName();
    const made = await newApp();
    const schema = { body: { type: 'object', required: ['amount'] } };
    made.post('/orders', { config: { idempotency: 'required' }, schema }, async (request) => order(request));
    const { url } = await listenOn(made);
    expect((await post(url, name, {})).status).toBe(400);
    expect((await post(url, name, '{"amount":')).status).toBe(400);
    expect((await post(url, name, { amount: 1 })).status).toBe(200);
  });

  test('a route that was added before the plugin is refused, not left unprotected', async () => {
    const idempotency = createIdempotency<Client>({ sql: fromPg(store.pool), scope: 'single-tenant' });
    app = fastify({ forceCloseConnections: true });
    let ran = false;
    app.post('/orders', { config: { idempotency: 'required' } }, async () => (ran = true));
    await app.register(idempotencyPlugin, { idempotency });
    const { url } = await listenOn(app);
    const refused = await post(url, newName());
    expect([refused.status, refused.json.code, ran]).toEqual([500, 'RS_IDEMPOTENCY_UNGUARDED', false]);
  });

  test('routes of nested plugins are guarded, and others are not touched', async () => {
    const name = newName();
    const made = await newApp();
    await made.register(async (nested) => {
      nested.post('/orders', { config: { idempotency: 'required' } }, async (request) => order(request));
      nested.post('/free', async (request) => request.idempotency.key ?? 'no key');
    });
    const { url } = await listenOn(made);
    expectReplay({ ...(await post(url, name)), ...(await post(url, name)) }, await post(url, name));
    expect((await send(`${url}/free`, { body: {} })).text).toBe('no key');
    expect(await store.orders(name)).toBe(1);
  });

  test('requests that tests inject are guarded too', async () => {
    const name = newName();
    const made = await newApp();
    made.post('/orders', { config: { idempotency: 'required' } }, async (request) => ({ id: await order(request) }));
    const inject = () =>
      made.inject({
        method: 'POST',
        url: '/orders',
        headers: { 'idempotency-key': name, 'x-name': name },
        payload: {},
      });
    const first = await inject();
    const replay = await inject();
    expect([replay.body, replay.headers['idempotent-replayed']]).toEqual([first.body, 'true']);
    expect(await store.orders(name)).toBe(1);
  });

  test('a misspelt declaration is refused when the route is added', async () => {
    const made = await newApp();
    const config = { idempotency: 'requierd' as 'required' };
    expect(() => made.post('/orders', { config }, async () => 1)).toThrow(/must be one of required, optional, off/);
  });
});
