import type pg from 'pg';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { fromPg } from '../../../src/adapters/sql/pg.js';
import {
  createIdempotency,
  type HttpAnswer,
  type IdempotencyContext,
  type IdempotencyOptions,
} from '../../../src/idempotency/index.js';
import {
  insertOrder,
  json,
  openStore,
  type Client,
  type Sent,
  type StartServer,
  type Store,
  type TestRoute,
  type TestServer,
} from './harness.js';

type Handle = TestRoute['handle'];

export interface Scenario {
  readonly store: () => Store;
  /** A name that no other test of the file uses, for an order and its key. */
  readonly newName: () => string;
  /** Starts a server with one guarded route. @returns the address of the route */
  readonly serve: (
    handle: Handle,
    route?: Partial<TestRoute>,
    options?: Partial<IdempotencyOptions<Client>>,
  ) => Promise<string>;
  /** The same on a pool of its own, as a second process would have. */
  readonly serveFrom: (pool: pg.Pool, handle: Handle, options?: Partial<IdempotencyOptions<Client>>) => Promise<string>;
  readonly createOrder: (name: string, more?: Partial<HttpAnswer>) => Handle;
}

/** A database for the file, and servers that end with each test. */
export function useScenario(start: StartServer): Scenario {
  let opened: Store | undefined;
  let count = 0;
  const servers: TestServer[] = [];
  const store = (): Store => {
    if (!opened) throw new Error('the store is opened before the tests');
    return opened;
  };

  beforeAll(async () => {
    opened = await openStore();
  });
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });
  afterAll(() => store().drop());

  const serve: Scenario['serve'] = async (handle, route = {}, options = {}) => {
    const idempotency = createIdempotency<Client>({ sql: fromPg(store().pool), scope: 'single-tenant', ...options });
    const server = await start(idempotency, [
      { methods: ['POST'], path: '/orders', key: 'required', handle, ...route },
    ]);
    servers.push(server);
    return `${server.url}${route.path ?? '/orders'}`;
  };

  return {
    store,
    newName: () => `order-${(count += 1)}`,
    serve,
    serveFrom: (pool, handle, options) => serve(handle, {}, { sql: fromPg(pool), ...options }),
    createOrder: (name, more) => async (context: IdempotencyContext<Client>) => {
      const orderId = await insertOrder(context, name);
      const headers = { location: `/orders/${orderId}`, etag: '"1"', 'set-cookie': 's=1' };
      return { ...json(201, { orderId }, headers), ...more };
    },
  };
}

export function expectReplay(replay: Sent, first: Sent): void {
  expect(replay.status).toBe(first.status);
  expect(replay.bytes.equals(first.bytes)).toBe(true);
  expect(replay.headers['idempotent-replayed']).toBe('true');
  expect(replay.headers['cache-control']).toBe('no-store');
  expect(replay.headers.date).toBeDefined();
  expect(replay.headers['set-cookie']).toBeUndefined();
  for (const name of ['content-type', 'location', 'etag', 'content-length']) {
    expect(replay.headers[name], name).toBe(first.headers[name]);
  }
}

export function expectProblem(sent: Sent, status: number, type: string, retryable: boolean): void {
  expect(sent.headers['content-type']).toBe('application/problem+json');
  expect(sent.json).toMatchObject({ type: `urn:replaysafe:problem:${type}`, status, retryable });
  expect(sent.json).toHaveProperty('title');
  expect(sent.json).toHaveProperty('code');
  expect(sent.status).toBe(status);
  expect(sent.headers['retry-after'] !== undefined).toBe(retryable);
  expect(sent.headers['idempotent-replayed']).toBeUndefined();
}
