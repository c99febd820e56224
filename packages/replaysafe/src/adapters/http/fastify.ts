import { Readable } from 'node:stream';
import type { FastifyPluginCallback, FastifyReply, FastifyRequest, RouteOptions as FastifyRoute } from 'fastify';
import { ReplaysafeError } from '../../errors.js';
import {
  ROUTE_OPTIONS,
  UNGUARDED_CONTEXT,
  type Idempotency,
  type IdempotencyContext,
  type RouteOptions,
} from '../../idempotency/index.js';
import { callback, parseOptions, port } from '../../options.js';
import { readBody, TOO_LARGE } from './body.js';
import { FastifyExchange } from './fastify-exchange.js';
import { toHttpRequest } from './to-request.js';

/**
 * Tells `request.idempotency.tx` its type:
 * `declare module 'replaysafe/adapters/http/fastify' { interface FastifyIdempotencyTypes { tx: PoolClient } }`.
 */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type -- it is there to be augmented
export interface FastifyIdempotencyTypes {}

type RegisteredTx = FastifyIdempotencyTypes extends { readonly tx: infer Tx } ? Tx : unknown;

declare module 'fastify' {
  interface FastifyRequest {
    /** The transaction and the keys of a guarded request. @throws RS_IDEMPOTENCY_UNGUARDED for its parts on other requests */
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-arguments -- the default only until it is augmented
    readonly idempotency: IdempotencyContext<RegisteredTx>;
  }
  interface FastifyContextConfig {
    /** How this route treats the key. Without it the route is not touched. */
    readonly idempotency?: RouteOptions | NonNullable<RouteOptions['key']>;
  }
}

export interface FastifyIdempotencyOptions {
  readonly idempotency: Idempotency;
  /** Whom the request comes from, for the scope resolver; called after all hooks that come before the handler. Default: nobody. */
  readonly principal?: (request: FastifyRequest) => unknown;
}

const PLUGIN_OPTIONS = {
  idempotency: port<Idempotency>(['handle', 'guards', 'problem']),
  principal: callback<(request: FastifyRequest) => unknown>(() => undefined),
};

const GUARDED = Symbol('guarded by replaysafe');

/**
 * Fastify 5 plugin. A route opts in by `config: { idempotency: 'required' }`; its handler finds `request.idempotency` and
 * replies as ever. What it replies, serialised and before compression, is stored and committed with its effect; only then is
 * it sent. An error that it throws or sends rolls back and takes Fastify's own error path.
 *
 * Register it before the routes: one that was there first and opts in is refused (RS_IDEMPOTENCY_UNGUARDED). Authenticate in
 * any hook; all of them run before the key is looked at, on a repetition too.
 *
 * @throws RS_OPTION_REQUIRED, RS_OPTION_INVALID, RS_OPTION_UNKNOWN, the latter two also when a route is added whose
 * `config.idempotency` is wrong
 */
export const idempotencyPlugin: FastifyPluginCallback<FastifyIdempotencyOptions> = (fastify, options, done) => {
  const { idempotency, principal } = parseOptions('idempotencyPlugin', PLUGIN_OPTIONS, options);
  const bodies = new WeakMap<FastifyRequest, Uint8Array>();
  const exchanges = new WeakMap<FastifyRequest, FastifyExchange>();

  fastify.decorateRequest('idempotency', {
    getter(this: FastifyRequest) {
      return exchanges.get(this)?.context ?? UNGUARDED_CONTEXT;
    },
  });

  fastify.addHook('onRoute', (route) => {
    const key = routeOf(route);
    if (key === undefined || ![route.method].flat().some((method) => idempotency.guards(method, key))) return;
    guard(route, key);
  });

  // A route that was added before this plugin never came through the hook above: refused, not silently unprotected.
  fastify.addHook('preHandler', (request, _reply, next) => {
    const config = request.routeOptions.config as NonNullable<FastifyRoute['config']> & { readonly [GUARDED]?: true };
    const unprotected = config.idempotency !== undefined && config[GUARDED] !== true;
    const key = unprotected ? parseDeclared(config.idempotency) : undefined;
    const refused = key !== undefined && idempotency.guards(request.method, key);
    next(
      refused ? new ReplaysafeError('RS_IDEMPOTENCY_UNGUARDED', { detail: 'register the plugin first' }) : undefined,
    );
  });
  done();

  function guard(route: FastifyRoute, key: RouteOptions): void {
    const isGuarded = (request: FastifyRequest): boolean => idempotency.guards(request.method, key);
    const handler = route.handler;
    route.handler = function (request, reply) {
      if (!isGuarded(request)) return handler.call(this, request, reply);
      const exchange = new FastifyExchange(reply);
      exchanges.set(request, exchange);
      return exchange.serve(
        (run) => {
          const body = bodies.get(request) ?? new Uint8Array(0);
          const arrived = { method: request.method, url: request.originalUrl, headers: request.headers };
          return idempotency.handle(toHttpRequest(arrived, body, principal(request)), run, key);
        },
        () => handler.call(this, request, reply),
      );
    };
    // Before the route's own hooks, e.g. those that a compression plugin has put there.
    route.onSend = [
      (request, _reply, payload) => exchanges.get(request)?.hold(payload) ?? Promise.resolve(payload),
      ...listed(route.onSend),
    ];
    route.onError = [
      (request, _reply, error, next) => {
        exchanges.get(request)?.fail(error);
        next();
      },
      ...listed(route.onError),
    ];
    route.preParsing = [
      async (request, reply, payload) => {
        if (!isGuarded(request) || hasNoBody(request)) return payload;
        const body = await readBody(payload, request.routeOptions.bodyLimit);
        if (body === TOO_LARGE) return refuseTooLarge(idempotency, reply);
        bodies.set(request, body);
        return again(body, (payload as { receivedEncodedLength?: number }).receivedEncodedLength);
      },
      ...listed(route.preParsing),
    ];
    route.config = { ...route.config, [GUARDED]: true } as NonNullable<FastifyRoute['config']>;
  }
};

// Hooks and decorator are for the instance that registers the plugin, not for a context of its own.
Object.assign(idempotencyPlugin, {
  [Symbol.for('skip-override')]: true,
  [Symbol.for('fastify.display-name')]: 'replaysafe-idempotency',
});

function routeOf(route: FastifyRoute): RouteOptions | undefined {
  return route.config?.idempotency === undefined ? undefined : parseDeclared(route.config.idempotency);
}

/** A route that says anything at all is meant to be guarded, whatever its method. */
function parseDeclared(declared: RouteOptions | RouteOptions['key']): RouteOptions {
  const given = typeof declared === 'object' ? declared : { key: declared };
  const { key, fingerprint } = parseOptions('config.idempotency', ROUTE_OPTIONS, given);
  return { key: key ?? 'required', ...(fingerprint && { fingerprint }) };
}

function listed<Hook>(hooks: Hook | Hook[] | undefined): Hook[] {
  return hooks === undefined ? [] : ([hooks].flat() as Hook[]);
}

/** As Fastify decides whether there is anything to parse. Reading the end of nothing would switch its `handlerTimeout` off. */
function hasNoBody({ headers }: FastifyRequest): boolean {
  const length = headers['content-length'];
  const framed = headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
  return !framed && headers['content-type'] === undefined;
}

/** What was read, for the parser to read again. */
function again(body: Uint8Array, receivedEncodedLength: number | undefined): Readable {
  const stream = new Readable({
    read() {
      if (body.byteLength > 0) this.push(body);
      this.push(null);
    },
  });
  // Fastify compares this with Content-Length.
  return Object.assign(stream, { receivedEncodedLength: receivedEncodedLength ?? body.byteLength });
}

function refuseTooLarge(idempotency: Pick<Idempotency, 'problem'>, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = idempotency.problem('RS_IDEMPOTENCY_BODY_TOO_LARGE');
  // As bytes: to a string Fastify adds a charset, which no JSON type has.
  const bytes = Buffer.from(body ?? '');
  return reply
    .code(status)
    .headers(headers as Record<string, string>)
    .header('connection', 'close')
    .send(bytes);
}
