import { createEngine } from './engine.js';
import { guards, handleRequest } from './handle-request.js';
import type { HttpAnswer, HttpRequest, RouteOptions, Run } from './http.js';
import type { IdempotencyOptions } from './options.js';
import { problem, type ProblemCode } from './problem.js';

export type { HttpAnswer, HttpRequest, IdempotencyContext, RequestHeaders, RouteOptions, Run } from './http.js';
export type { IdempotencyOptions, ScopeResolver } from './options.js';
export type { RecordState } from './states.js';
export { createIdempotencySweep, type IdempotencySweepOptions } from './sweep.js';
export { PROBLEMS, type ProblemCode } from './problem.js';
export { ROUTE_OPTIONS } from './options.js';
export { UNGUARDED_CONTEXT } from './context.js';

/** For `Access-Control-Allow-Headers`: a browser asks in its preflight whether it may send the key. */
export const CORS_REQUEST_HEADERS: readonly string[] = Object.freeze(['Idempotency-Key']);
/** For `Access-Control-Expose-Headers`: what a browser's code needs to read of our answers. */
export const CORS_EXPOSED_HEADERS: readonly string[] = Object.freeze([
  'Idempotent-Replayed',
  'Retry-After',
  'Location',
]);

/** The engine behind every HTTP adapter; it knows no framework. */
export interface Idempotency<Tx = unknown> {
  /**
   * Answers one request. `run` is the handler; it is called at most once, and its effect and its answer are committed
   * together before the answer is returned. A status that is not definitive (401, 403, 408, 413, 421, 425, 429, 5xx) rolls
   * everything back.
   *
   * @param route how the route treats the key; `{}` guards POST and PATCH and requires a key
   * @throws what `run` throws, after the rollback; RS_IDEMPOTENCY_SCOPE_INVALID
   */
  handle(request: HttpRequest, run: Run<Tx>, route?: RouteOptions): Promise<HttpAnswer>;
  /** Whether a request of this method is guarded on this route. GET, HEAD and OPTIONS never are. */
  guards(method: string, route?: RouteOptions): boolean;
  /** One of our own answers, for adapters. */
  problem(code: ProblemCode): HttpAnswer;
}

/**
 * HTTP idempotency in atomic mode: for one (scope, key) the effect happens once, and every repetition, on any instance, gets
 * the first answer, whatever is killed in between. Nothing remains of a request that was cut before its COMMIT.
 *
 * @throws RS_OPTION_REQUIRED without `sql` or `scope`, RS_OPTION_INVALID, RS_OPTION_UNKNOWN
 */
export function createIdempotency<Tx>(options: IdempotencyOptions<Tx>): Idempotency<Tx> {
  const engine = createEngine(options);
  return {
    handle: (request, run, route = {}) => handleRequest(engine, request, run, route),
    guards: (method, route = {}) => guards(method, route),
    problem: (code) => problem(engine.options, code),
  };
}
