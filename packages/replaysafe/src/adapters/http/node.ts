import type { IncomingMessage, ServerResponse } from 'node:http';
import { hasCode, ReplaysafeError } from '../../errors.js';
import {
  ROUTE_OPTIONS,
  type HttpAnswer,
  type Idempotency,
  type IdempotencyContext,
  type RouteOptions,
} from '../../idempotency/index.js';
import { callback, integer, optional, parseOptions, port, type ParsedOptions } from '../../options.js';
import { silentLogger, type Logger } from '../../ports/logger.js';
import { readBody, TOO_LARGE } from './body.js';
import { toHttpRequest } from './to-request.js';

/** Node's request, with its body read to the end. */
export type NodeRequest = IncomingMessage & {
  readonly bodyBytes: Uint8Array;
  /** The body as JSON. @throws RS_IDEMPOTENCY_BODY_INVALID, which is answered 400 */
  json<T = unknown>(): T;
};

export type NodeHandler<Tx> = (request: NodeRequest, context: IdempotencyContext<Tx>) => Promise<HttpAnswer>;

export interface NodeRouteOptions extends RouteOptions {
  /** A longer request is answered 413, in bytes. Default 1 MiB. */
  readonly maxRequestBytes?: number;
  /** Whom the request comes from, for the scope resolver. Throws to refuse it; its error goes to `onError`. Default: nobody. */
  readonly principal?: (request: IncomingMessage) => unknown;
  /** Turns an error of the handler, which was rolled back, into an answer. Default: a logged 500 that tells nothing. */
  readonly onError?: (error: unknown, request: IncomingMessage) => HttpAnswer | Promise<HttpAnswer>;
  /** Hears of handlers that threw. Default: silent. */
  readonly logger?: Logger;
}

const INTERNAL_ERROR: HttpAnswer = {
  status: 500,
  headers: { 'content-type': 'application/problem+json', 'cache-control': 'no-store' },
  body: JSON.stringify({ type: 'about:blank', title: 'Internal Server Error', status: 500 }),
};

const OPTIONS = {
  ...ROUTE_OPTIONS,
  maxRequestBytes: integer({ default: 1_048_576 }),
  principal: callback<NonNullable<NodeRouteOptions['principal']>>(() => undefined),
  onError: optional(callback<NonNullable<NodeRouteOptions['onError']>>()),
  logger: port<Logger>(['error'], silentLogger),
};

type Problems = Pick<Idempotency, 'problem'>;
type Settings = ParsedOptions<typeof OPTIONS>;

/**
 * A listener for `node:http` that guards one handler: it reads the body to its end, and sends the answer after COMMIT. A
 * client that goes away does not stop a handler that has begun. The listener never rejects.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function withIdempotency<Tx>(
  idempotency: Idempotency<Tx>,
  handler: NodeHandler<Tx>,
  options?: NodeRouteOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const settings = parseOptions('withIdempotency', OPTIONS, options);
  return async (request, response) => {
    try {
      const answer = await answerTo(idempotency, handler, settings, request);
      if (answer !== undefined) send(response, answer);
    } catch (err) {
      // An error handler that throws, or a header that Node refuses to send.
      settings.logger.error({ err }, 'an HTTP answer could not be sent');
      fail(response);
    }
  };
}

async function answerTo<Tx>(
  idempotency: Idempotency<Tx>,
  handler: NodeHandler<Tx>,
  settings: Settings,
  request: IncomingMessage,
): Promise<HttpAnswer | undefined> {
  try {
    const principal: unknown = await settings.principal(request);
    const body = await arrivedBody(request, settings.maxRequestBytes);
    if (body === undefined) return undefined;
    if (body === TOO_LARGE) return tooLarge(idempotency);
    const nodeRequest = withBody(request, body);
    return await idempotency.handle(
      toHttpRequest(request, body, principal),
      (context) => handler(nodeRequest, context),
      routeOf(settings),
    );
  } catch (error) {
    return await (settings.onError ?? defaultError(idempotency, settings.logger))(error, request);
  }
}

/** @returns nothing when the client went away before its request had arrived: there is nobody to answer */
async function arrivedBody(
  request: IncomingMessage,
  limit: number,
): Promise<Uint8Array | typeof TOO_LARGE | undefined> {
  try {
    return await readBody(request, limit);
  } catch {
    return undefined;
  }
}

function routeOf({ key, fingerprint }: Settings): RouteOptions {
  return { ...(key && { key }), ...(fingerprint && { fingerprint }) };
}

function withBody(request: IncomingMessage, bodyBytes: Uint8Array): NodeRequest {
  return Object.assign(request, {
    bodyBytes,
    json: <T>(): T => {
      try {
        return JSON.parse(Buffer.from(bodyBytes).toString('utf8')) as T;
      } catch (cause) {
        throw new ReplaysafeError('RS_IDEMPOTENCY_BODY_INVALID', { cause });
      }
    },
  });
}

function tooLarge(idempotency: Problems): HttpAnswer {
  const { status, headers, body } = idempotency.problem('RS_IDEMPOTENCY_BODY_TOO_LARGE');
  return { status, headers: { ...headers, connection: 'close' }, body };
}

function defaultError(idempotency: Problems, logger: Logger) {
  return (error: unknown): HttpAnswer => {
    if (hasCode(error, 'RS_IDEMPOTENCY_BODY_INVALID'))
      return idempotency.problem(error.code as 'RS_IDEMPOTENCY_BODY_INVALID');
    logger.error({ err: error }, 'a request handler threw');
    return INTERNAL_ERROR;
  };
}

function send(response: ServerResponse, { status, headers, body }: HttpAnswer): void {
  // The client has gone: its retry gets the stored answer.
  if (response.destroyed || response.headersSent) return;
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, typeof value === 'string' ? value : [...value]);
  }
  if (status === 204 || status === 304) {
    response.end();
    return;
  }
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : (body ?? new Uint8Array(0));
  response.setHeader('content-length', bytes.byteLength);
  response.end(bytes);
}

function fail(response: ServerResponse): void {
  if (response.destroyed || response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  send(response, INTERNAL_ERROR);
}
