import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { inject } from 'vitest';
import { fromPg, type PgClient } from '../../../src/adapters/sql/pg.js';
import type { HttpAnswer, Idempotency, IdempotencyContext, RouteOptions } from '../../../src/idempotency/index.js';
import { migrate } from '../../../src/migrate/index.js';

export type Client = pg.PoolClient & PgClient;

/** A route that every adapter can serve: its handler knows no framework. */
export interface TestRoute extends RouteOptions {
  readonly methods: readonly string[];
  readonly path: string;
  readonly handle: (context: IdempotencyContext<Client>, body: Buffer) => Promise<HttpAnswer>;
}

/** Who calls is told by this header; real services authenticate. */
export const TENANT_HEADER = 'x-tenant';

export interface TestServer {
  readonly url: string;
  close(): Promise<void>;
}

export type StartServer = (idempotency: Idempotency<Client>, routes: readonly TestRoute[]) => Promise<TestServer>;

export interface Store {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  /** A further pool on the same database, as a second process would have. */
  openPool(config?: pg.PoolConfig): pg.Pool;
  /** How many orders of this name there are. */
  orders(name: string): Promise<number>;
  records(): Promise<{ state: string; body_omitted: boolean }[]>;
  drop(): Promise<void>;
}

export async function openStore(): Promise<Store> {
  const database = await createDatabase(inject('databaseUrl'));
  const pools: pg.Pool[] = [];
  const openPool = (config: pg.PoolConfig = {}): pg.Pool => {
    const pool = new pg.Pool({ connectionString: database.url, ...config });
    pool.on('error', () => undefined);
    pools.push(pool);
    return pool;
  };
  const pool = openPool();
  await migrate(fromPg(pool));
  await pool.query('create table orders (id bigint generated always as identity, name text not null, tenant text)');
  await pool.query(
    'create table unique_name (name text constraint unique_name_once unique deferrable initially immediate)',
  );
  return {
    database,
    pool,
    openPool,
    orders: async (name) => {
      const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from orders where name = $1', [name]);
      return rows[0]!.n;
    },
    records: async () => {
      const { rows } = await pool.query<{ state: string; body_omitted: boolean }>(
        'select state, body_omitted from replaysafe.idempotency_record order by created_at',
      );
      return rows;
    },
    drop: async () => {
      await Promise.all(pools.map((each) => each.end()));
      await database.drop();
    },
  };
}

export async function insertOrder(context: IdempotencyContext<Client>, name: string): Promise<string> {
  const { rows } = await context.tx.query<{ id: string }>('insert into orders (name) values ($1) returning id', [name]);
  return rows[0]!.id;
}

export const json = (status: number, body: unknown, headers: HttpAnswer['headers'] = {}): HttpAnswer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
});

export interface Sent {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body as a problem or any other JSON. */
  readonly json: Record<string, unknown>;
}

export interface SendOptions {
  readonly method?: string;
  /** A list of pairs sends a header twice. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly key?: string | undefined;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
}

/** One request on a connection of its own, with exactly these headers. */
export function send(url: string, options: SendOptions = {}): Promise<Sent> {
  const { method = 'POST', key, body, signal } = options;
  const bytes = Buffer.isBuffer(body) || typeof body === 'string' ? body : JSON.stringify(body);
  const headers: http.OutgoingHttpHeaders = {
    ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(bytes) }),
    ...(key === undefined ? {} : { 'idempotency-key': key }),
    ...(options.headers as http.OutgoingHttpHeaders | undefined),
  };
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false, ...(signal && { signal }) }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const received = Buffer.concat(chunks);
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          bytes: received,
          text: received.toString('utf8'),
          get json() {
            return JSON.parse(received.toString('utf8')) as Record<string, unknown>;
          },
        });
      });
    });
    request.on('error', reject);
    request.end(body === undefined ? undefined : bytes);
  });
}

export function listen(server: http.Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    });
  });
}

/** A door that stays shut until it is opened, for tests that hold a handler. */
export class Gate {
  #open: () => void = () => undefined;
  #enter: () => void = () => undefined;
  /** Somebody waits at the gate. */
  readonly entered: Promise<void> = new Promise((resolve) => {
    this.#enter = resolve;
  });
  readonly #opened: Promise<void> = new Promise((resolve) => {
    this.#open = resolve;
  });

  pass(): Promise<void> {
    this.#enter();
    return this.#opened;
  }

  open(): void {
    this.#open();
  }
}
