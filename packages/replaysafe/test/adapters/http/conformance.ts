import { describe, expect, test } from 'vitest';
import { CORS_REQUEST_HEADERS } from '../../../src/idempotency/index.js';
import { insertOrder, json, send, TENANT_HEADER, type StartServer, type TestRoute } from './harness.js';
import { expectProblem, expectReplay, useScenario } from './scenario.js';

/** What any HTTP adapter must do with keys and answers, over real sockets. */
export function httpConformance(start: StartServer): void {
  const { store, serve, newName, createOrder } = useScenario(start);

  describe('an answer is given once and repeated', () => {
    test('a repetition gets the same status, bytes and headers, and nothing happens again', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      const first = await send(url, { key: name, body: { amount: 1 } });
      expect(first.status).toBe(201);
      expect(first.headers['set-cookie']).toEqual(['s=1']);
      expect(first.headers['idempotent-replayed']).toBeUndefined();
      for (let i = 0; i < 3; i++) expectReplay(await send(url, { key: name, body: { amount: 1 } }), first);
      expect(await store().orders(name)).toBe(1);
    });

    test('quoted and bare form name one key, in any letter case of the header', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      const first = await send(url, { headers: { 'IDEMPOTENCY-KEY': name }, body: {} });
      expectReplay(await send(url, { headers: { 'Idempotency-key': `"${name}"` }, body: {} }), first);
    });

    test('JSON that differs in white space and the order of names is the same request', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      const first = await send(url, { key: name, body: '{"a":1.50,"b":[true,null]}' });
      expectReplay(await send(url, { key: name, body: '{ "b": [true, null],\n "a": 15e-1 }' }), first);
    });

    test.each([
      [
        'binary',
        { status: 200, headers: { 'content-type': 'image/png' }, body: Buffer.from([0, 255, 128, 13, 10, 0]) },
      ],
      ['empty 204', { status: 204, headers: {}, body: null }],
      ['empty 200', { status: 200, headers: {}, body: null }],
      ['redirect', { status: 303, headers: { location: '/elsewhere' }, body: null }],
      ['text', { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'grüße \u{1F600}' }],
      ['definitive refusal', { status: 409, headers: { 'content-type': 'text/plain' }, body: 'sold out' }],
      [
        'encoded by the handler',
        { status: 200, headers: { 'content-encoding': 'gzip' }, body: Buffer.from('1f8b', 'hex') },
      ],
    ])('a replay of a body that is %s is equal byte by byte, and the handler does not run again', async (_, answer) => {
      const name = newName();
      const url = await serve(createOrder(name, answer));
      const first = await send(url, { key: name, body: {} });
      expect(first.status).toBe(answer.status);
      const replay = await send(url, { key: name, body: {} });
      expectReplay(replay, first);
      expect(replay.headers['content-encoding']).toBe(first.headers['content-encoding']);
      expect(await store().orders(name)).toBe(1);
    });

    test('keys for remote calls are the same in each try and differ by step', async () => {
      const keys: string[] = [];
      let tries = 0;
      const url = await serve(async (context) => {
        keys.push(context.keyFor('charge'), context.keyFor('mail'));
        tries += 1;
        return json(tries === 1 ? 503 : 201, {});
      });
      await send(url, { key: 'steps', body: {} });
      await send(url, { key: 'steps', body: {} });
      expect(keys.slice(0, 2)).toEqual(keys.slice(2, 4));
      expect(new Set(keys).size).toBe(2);
    });
  });

  describe('requests that are refused', () => {
    test.each([
      ['none', {}, 'idempotency-key-required'],
      ['empty', { 'idempotency-key': '' }, 'idempotency-key-invalid'],
      ['two, sent twice', { 'idempotency-key': ['k1x', 'k2x'] }, 'idempotency-key-invalid'],
      ['one, sent twice', { 'idempotency-key': ['k1x', 'k1x'] }, 'idempotency-key-invalid'],
      ['two strings', { 'idempotency-key': '"k1x", "k2x"' }, 'idempotency-key-invalid'],
      ['with a space', { 'idempotency-key': 'k1x k2x' }, 'idempotency-key-invalid'],
      ['with a parameter', { 'idempotency-key': '"k1x";a=1' }, 'idempotency-key-invalid'],
      ['an open quote', { 'idempotency-key': '"k1x' }, 'idempotency-key-invalid'],
      ['too long', { 'idempotency-key': 'k'.repeat(256) }, 'idempotency-key-invalid'],
    ])('key: %s', async (_, headers: Record<string, string | string[]>, type) => {
      const name = newName();
      const url = await serve(createOrder(name));
      const refused = await send(url, { headers, body: {} });
      expectProblem(refused, 400, type, false);
      expect(refused.text).not.toContain('k1x');
      expect(await store().orders(name)).toBe(0);
    });

    test.each([
      ['another body', '{"amount":2}', '', {}],
      ['a number that differs beyond double precision', '{"amount":9007199254740992}', '', {}],
      ['another query', '{"amount":9007199254740993}', '?dry=1', {}],
      ['another media type', '{"amount":9007199254740993}', '', { 'content-type': 'application/vnd.x' }],
    ])('the key of another request: %s', async (_, body, query, headers) => {
      const name = newName();
      const url = await serve(createOrder(name));
      const first = await send(url, { key: name, body: '{"amount":9007199254740993}' });
      expectProblem(await send(url + query, { key: name, body, headers }), 422, 'idempotency-key-reused', false);
      expectReplay(await send(url, { key: name, body: '{"amount":9007199254740993}' }), first);
      expect(await store().orders(name)).toBe(1);
    });

    test('the status for a reused key, and the base of the problem types, can be chosen', async () => {
      const name = newName();
      const url = await serve(createOrder(name), {}, { reusedStatus: 409, problemBase: 'https://example.com/p/' });
      await send(url, { key: name, body: { a: 1 } });
      const refused = await send(url, { key: name, body: { a: 2 } });
      expect(refused.status).toBe(409);
      expect(refused.json).toMatchObject({ type: 'https://example.com/p/idempotency-key-reused', status: 409 });
    });

    test('a fingerprint of its own decides what is the same request on a route', async () => {
      const name = newName();
      const fingerprint: NonNullable<TestRoute['fingerprint']> = ({ body }) =>
        String((JSON.parse(Buffer.from(body).toString()) as { amount: number }).amount);
      const url = await serve(createOrder(name), { fingerprint });
      const first = await send(url, { key: name, body: { amount: 1, sentAt: 1 } });
      expectReplay(await send(url, { key: name, body: { amount: 1, sentAt: 2 } }), first);
      expectProblem(await send(url, { key: name, body: { amount: 2 } }), 422, 'idempotency-key-reused', false);
    });

    test('a request longer than the route accepts', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      const refused = await send(url, { key: name, body: { text: 'x'.repeat(1_100_000) } });
      expectProblem(refused, 413, 'idempotency-body-too-large', false);
      expect(refused.headers.connection).toBe('close');
      expect(await store().orders(name)).toBe(0);
    });
  });

  describe('whose key and which methods', () => {
    test('tenant B does not replay the answer of tenant A: same key, same body, no shared byte', async () => {
      const name = newName();
      const url = await serve(createOrder(name), {}, { scope: ({ principal }) => principal as string | undefined });
      const a = await send(url, { key: 'shared', headers: { [TENANT_HEADER]: 'a' }, body: {} });
      const b = await send(url, { key: 'shared', headers: { [TENANT_HEADER]: 'b' }, body: {} });
      expect([a.status, b.status]).toEqual([201, 201]);
      expect(a.json.orderId).not.toBe(b.json.orderId);
      expectReplay(await send(url, { key: 'shared', headers: { [TENANT_HEADER]: 'a' }, body: {} }), a);
      expect(await store().orders(name)).toBe(2);
      // Nobody: not a namespace that all strangers share.
      expect((await send(url, { key: 'shared', body: {} })).status).toBe(500);
      expect(await store().orders(name)).toBe(2);
    });

    test('anyone can send the names of our response headers; a fresh key is executed all the same', async () => {
      const name = newName();
      const url = await serve(createOrder(name));
      const forged = { 'idempotent-replayed': 'true', 'x-hit': 'true', 'idempotency-status': 'replayed' };
      const first = await send(url, { key: name, headers: forged, body: {} });
      expect(first.status).toBe(201);
      expect(first.headers['idempotent-replayed']).toBeUndefined();
      expectReplay(await send(url, { key: name, headers: forged, body: {} }), first);
      expect(await store().orders(name)).toBe(1);
    });

    test('keyless requests do not all return the first result: where the key is optional, each is executed', async () => {
      const name = newName();
      const url = await serve(createOrder(name), { key: 'optional' });
      const one = await send(url, { body: {} });
      const two = await send(url, { body: {} });
      expect([one.status, two.status]).toEqual([201, 201]);
      expect(one.json.orderId).not.toBe(two.json.orderId);
      const keyed = await send(url, { key: name, body: {} });
      expectReplay(await send(url, { key: name, body: {} }), keyed);
      expect(await store().orders(name)).toBe(3);
    });

    test('a keyless request on an optional route is rolled back by a 5xx, and its keyFor is refused', async () => {
      const name = newName();
      const url = await serve(
        async (context) => {
          await insertOrder(context, name);
          expect(() => context.keyFor('step')).toThrow(/Idempotency-Key/);
          return json(500, {});
        },
        { key: 'optional' },
      );
      expect((await send(url, { body: {} })).status).toBe(500);
      expect(await store().orders(name)).toBe(0);
    });

    test('preflights are not blocked: GET, HEAD and OPTIONS are untouched on a route that requires a key', async () => {
      const touched: unknown[] = [];
      const url = await serve(
        async (context) => {
          expect(() => context.tx).toThrow(/not guarded/);
          touched.push(context.key);
          return json(200, {}, { 'access-control-allow-headers': CORS_REQUEST_HEADERS.join(', ') });
        },
        { methods: ['GET', 'HEAD', 'OPTIONS', 'POST'] },
      );
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        const sent = await send(url, { method, headers: { 'idempotency-key': 'two, keys' } });
        expect(sent.status, method).toBe(200);
        expect(sent.headers['access-control-allow-headers']).toBe('Idempotency-Key');
      }
      expect(touched).toEqual([undefined, undefined, undefined]);
      expectProblem(await send(url, { body: {} }), 400, 'idempotency-key-required', false);
    });

    test('PUT and DELETE are guarded where the route says so', async () => {
      const name = newName();
      const url = await serve(createOrder(name), { methods: ['PUT', 'DELETE'] });
      const first = await send(url, { method: 'PUT', key: name, body: {} });
      expectReplay(await send(url, { method: 'PUT', key: name, body: {} }), first);
      expectProblem(await send(url, { method: 'DELETE', key: name, body: {} }), 422, 'idempotency-key-reused', false);
      expect(await store().orders(name)).toBe(1);
    });

    test('a route that is off is not touched', async () => {
      const url = await serve(async (context) => json(200, { key: context.key ?? null }), { key: 'off' });
      expect((await send(url, { key: 'any', body: {} })).json).toEqual({ key: null });
    });
  });
}
