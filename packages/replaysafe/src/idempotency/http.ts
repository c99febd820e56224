import type { SqlTransaction } from '../ports/sql.js';

/** Names are lower case. A name that occurred several times has its values joined by `, `, as Node does it. */
export type RequestHeaders = Readonly<Record<string, string | undefined>>;

/** A request as the engine sees it, whatever framework it came through. */
export interface HttpRequest {
  readonly method: string;
  /** As it was sent: still escaped, without the query. */
  readonly path: string;
  /** As it was sent, without the `?`; empty when there is none. */
  readonly query: string;
  readonly headers: RequestHeaders;
  /** The bytes as they arrived. */
  readonly body: Uint8Array;
  /** Whom the framework has authenticated, for the scope resolver. */
  readonly principal?: unknown;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Uint8Array | string | null;
  /**
   * There is a body, but the engine is not shown it, e.g. a stream that the adapter sends itself. It cannot be stored: a
   * retry is answered `idempotency-response-unavailable` and is not executed again.
   */
  readonly bodyUnavailable?: boolean;
}

export const NO_BODY: Uint8Array = new Uint8Array(0);

export function bodyBytes(body: HttpAnswer['body']): Uint8Array {
  if (body === null) return NO_BODY;
  return typeof body === 'string' ? Buffer.from(body, 'utf8') : body;
}

/** What the handler of a guarded request is given. */
export interface IdempotencyContext<Tx = unknown> {
  /** The transaction as your own code uses it, e.g. a `pg` client. The answer is sent after its COMMIT. */
  readonly tx: Tx;
  /** The same transaction as the port's executor, with `savepoint`. */
  readonly sql: SqlTransaction<Tx>;
  /** The client's key, for passing on; never log it. `undefined` where the route lets a request come without one. */
  readonly key: string | undefined;
  /**
   * A key for a remote call of this operation: made of scope, client key and step, so that it is the same in every retry
   * and every process.
   * @throws RS_IDEMPOTENCY_KEY_REQUIRED for a request that came without a key
   */
  keyFor(step: string): string;
  /** Aborts when the transaction is cut: at `transactionTimeoutMs`, or at the deadline of the shutdown. */
  readonly signal: AbortSignal;
}

/** How one route treats the key. */
export interface RouteOptions {
  /**
   * `required`: a request without a key is refused. `optional`: it runs in a transaction of its own, once for each arrival.
   * `off`: the route is not touched. Said aloud, it also guards methods other than POST and PATCH. Default `required`.
   */
  readonly key?: 'required' | 'optional' | 'off';
  /** What makes two requests the same, in place of query, media type and body. Method and path are always part of it. */
  readonly fingerprint?: (request: HttpRequest) => string | Uint8Array;
}

export type Run<Tx> = (context: IdempotencyContext<Tx>) => Promise<HttpAnswer>;
