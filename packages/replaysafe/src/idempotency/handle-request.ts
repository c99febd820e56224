import { ERRORS, ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { attempt, type Attempt } from './attempt.js';
import { UNGUARDED_CONTEXT } from './context.js';
import { refuse, shownHash, type Engine } from './engine.js';
import { problemOfStore } from './failure.js';
import { fingerprint, FINGERPRINT_VERSION } from './fingerprint.js';
import type { HttpAnswer, HttpRequest, RouteOptions, Run } from './http.js';
import { hashKey, KEY_HEADER, parseKey } from './key.js';
import type { ScopeResolver } from './options.js';
import { readWithin } from './recover.js';
import type { Operation } from './store.js';
import { answerOf } from './verdict.js';
import type { Waiter } from './waiters.js';

/** Safe by definition; a key on them means nothing, even where a route covers all methods. */
const NEVER_GUARDED: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY']);
const GUARDED_BY_DEFAULT: ReadonlySet<string> = new Set(['POST', 'PATCH']);

/** Whether requests of this method are guarded on this route. */
export function guards(method: string, route: RouteOptions): boolean {
  if (route.key === 'off' || NEVER_GUARDED.has(method)) return false;
  return route.key !== undefined || GUARDED_BY_DEFAULT.has(method);
}

/**
 * Answers one request: by its stored answer, by executing it, or by a problem. The answer may be sent as soon as it is
 * returned: what it tells is committed.
 *
 * @throws what the handler throws, after the rollback
 * @throws RS_IDEMPOTENCY_SCOPE_INVALID
 */
export async function handleRequest<Tx>(
  engine: Engine<Tx>,
  request: HttpRequest,
  run: Run<Tx>,
  route: RouteOptions,
): Promise<HttpAnswer> {
  if (!guards(request.method, route)) return run(UNGUARDED_CONTEXT);
  const header = request.headers[KEY_HEADER];
  if (header === undefined) {
    if (route.key === 'optional') return withoutKey(engine, run);
    return refuse(engine, 'RS_IDEMPOTENCY_KEY_REQUIRED');
  }
  const key = parseKey(header);
  if (key === undefined) return refuse(engine, 'RS_IDEMPOTENCY_KEY_INVALID');
  const scope = resolveScope(engine.options.scope, request);
  const operation: Operation = {
    keyHash: hashKey(scope, key),
    scope,
    key,
    fp: fingerprint(request, route.fingerprint),
    fpVersion: FINGERPRINT_VERSION,
  };
  return untilAnswered(engine, operation, run);
}

async function withoutKey<Tx>(engine: Engine<Tx>, run: Run<Tx>): Promise<HttpAnswer> {
  const made = await attempt(engine, undefined, run);
  if (made.kind === 'answered') return made.answer;
  throw new TypeError('a request without a key cannot meet another one');
}

/** Looks, tries, waits, and looks again. Whoever waits holds neither a connection nor a lock. */
async function untilAnswered<Tx>(engine: Engine<Tx>, operation: Operation, run: Run<Tx>): Promise<HttpAnswer> {
  let waiter: Waiter | undefined;
  let justTaken = false;
  try {
    for (;;) {
      const found = await lookThenTry(engine, operation, run);
      if (found.kind === 'answered') return found.answer;
      // A record was committed between our look and our claim: look again at once, but not for ever without a pause.
      if (found.kind === 'taken' && !justTaken) {
        justTaken = true;
        continue;
      }
      justTaken = false;
      waiter ??= engine.waiters.enter(shownHash(operation));
      if (waiter === undefined || !(await waiter.pause())) {
        return refuse(engine, 'RS_IDEMPOTENCY_IN_PROGRESS', operation, { close: engine.waiters.stopping });
      }
    }
  } finally {
    if (waiter !== undefined) {
      waiter.leave();
      emit('idempotency.waited', { keyHash: shownHash(operation), waitedMs: waiter.waitedMs });
    }
  }
}

async function lookThenTry<Tx>(engine: Engine<Tx>, operation: Operation, run: Run<Tx>): Promise<Attempt> {
  let record;
  try {
    record = await readWithin(engine, operation, engine.options.transactionTimeoutMs);
  } catch (err) {
    // Whether it was executed before is not known, so it is not executed now.
    const code = problemOfStore(err);
    const fields = { code, err, keyHash: shownHash(operation) };
    if (code === 'RS_MIGRATE_PENDING') engine.options.logger.error(fields, ERRORS[code].message);
    else engine.options.logger.warn(fields, 'the idempotency record could not be read');
    return { kind: 'answered', answer: refuse(engine, code, operation) };
  }
  if (record === undefined) return attempt(engine, operation, run);
  const answer = answerOf(engine, operation, record);
  return answer === undefined ? { kind: 'locked' } : { kind: 'answered', answer };
}

const SINGLE_TENANT = 'single-tenant';

function resolveScope(scope: 'single-tenant' | ScopeResolver, request: HttpRequest): string {
  const name: unknown = scope === SINGLE_TENANT ? SINGLE_TENANT : scope(request);
  // PostgreSQL has no NUL in text, and a lone surrogate would be stored as something else.
  if (typeof name === 'string' && name.length >= 1 && name.length <= 255 && !/[\0\p{Surrogate}]/u.test(name))
    return name;
  throw new ReplaysafeError('RS_IDEMPOTENCY_SCOPE_INVALID', { detail: `it returned ${describe(name)}` });
}

function describe(name: unknown): string {
  if (typeof name !== 'string') return name === null ? 'null' : typeof name;
  return name === '' ? 'an empty string' : `a string of ${String(name.length)} characters that it cannot store`;
}
