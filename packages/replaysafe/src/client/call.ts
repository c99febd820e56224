import { ReplaysafeError } from '../errors.js';
import { invalidHeader, lowerCased } from './headers.js';
import { checkedKey, KEY_HEADER } from './key.js';
import { refuseKeylessWrite, refuseWithoutKey } from './policy.js';

export type HttpMethod = 'GET' | 'HEAD' | 'OPTIONS' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface CallOptions {
  /**
   * The key of the business operation, sent on every try. Make it outside of anything that is repeated, e.g. with
   * {@link operationKey} or `ctx.keyFor`.
   */
  readonly idempotencyKey?: string;
  /** Serialised once; every try sends the same bytes. */
  readonly json?: unknown;
  /** Sent as it is. Streams are refused: they can be read only once. */
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** `false`: exactly one try, and a write needs no key. */
  readonly retry?: false;
  /** Declares that a PUT or DELETE does the same however often it arrives; it then needs no key. */
  readonly repeatable?: true;
  /** Whole call with all tries and waits, in milliseconds, instead of the client's `timeouts.totalMs`. */
  readonly timeoutMs?: number;
  /** Gives the call up. */
  readonly signal?: AbortSignal;
}

/** One operation, made ready once: nothing in it changes between tries. The pool is given it as it is. */
export interface PreparedCall {
  readonly method: HttpMethod;
  readonly path: string;
  /** Name, value, name, value. */
  readonly headers: string[];
  readonly body: string | Uint8Array | null;
  readonly key: string | undefined;
  readonly retry: boolean;
  readonly repeatable: boolean;
}

/** What a client adds to every call. */
export interface CallDefaults {
  readonly basePath: string;
  /** Lower-case names. */
  readonly headers: ReadonlyMap<string, string>;
  readonly money: boolean;
  readonly traceparent: (() => string | undefined) | undefined;
}

const CALL_OPTIONS = new Set([
  'idempotencyKey',
  'json',
  'body',
  'headers',
  'retry',
  'repeatable',
  'timeoutMs',
  'signal',
]);
const PATH = /^\/[\x21-\x7e]*$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-[\x21-\x7e]+)?$/;

/**
 * Refuses here what could never be sent: later it would look like a failure of the remote system, worth another try.
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID, RS_CLIENT_REQUEST_INVALID, RS_CLIENT_KEY_REQUIRED, RS_CLIENT_KEY_INVALID,
 * RS_CLIENT_BODY_NOT_REPLAYABLE
 */
export function prepareCall(
  method: HttpMethod,
  path: string,
  options: CallOptions,
  defaults: CallDefaults,
): PreparedCall {
  checkOptions(method, options);
  const complaint = pathComplaint(path) ?? (options.headers && invalidHeader(options.headers));
  if (complaint !== undefined) throw new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { detail: complaint });
  const own = options.headers === undefined ? undefined : lowerCased(options.headers);
  const key = callerKey(options.idempotencyKey, own?.get(KEY_HEADER));
  const call = {
    method,
    path: defaults.basePath + path,
    headers: headerList(options, own, key, defaults),
    body: bodyOf(options),
    key,
    retry: options.retry ?? true,
    repeatable: options.repeatable ?? false,
  };
  refuseKeylessWrite(call);
  if (defaults.money) refuseWithoutKey(call);
  return call;
}

function checkOptions(method: HttpMethod, options: CallOptions): void {
  for (const name in options) {
    if (!CALL_OPTIONS.has(name))
      throw new ReplaysafeError('RS_OPTION_UNKNOWN', { detail: `${method} call: "${name}"` });
  }
  const { timeoutMs } = options;
  if (timeoutMs === undefined || (Number.isInteger(timeoutMs) && timeoutMs >= 1 && timeoutMs <= LONGEST_CALL_MS))
    return;
  throw new ReplaysafeError('RS_OPTION_INVALID', {
    detail: `${method} call: timeoutMs must be a whole number from 1 to ${LONGEST_CALL_MS}, not ${String(timeoutMs)}`,
  });
}

/** The longest that a timer can wait: a longer one would fire at once. */
const LONGEST_CALL_MS = 2_147_483_647;

function headerList(
  options: CallOptions,
  own: ReadonlyMap<string, string> | undefined,
  key: string | undefined,
  defaults: CallDefaults,
): string[] {
  const list: string[] = [];
  for (const [name, value] of defaults.headers) {
    if (own?.has(name) !== true) list.push(name, value);
  }
  if (own !== undefined) {
    for (const [name, value] of own) {
      if (name !== KEY_HEADER) list.push(name, value);
    }
  }
  const named = (name: string): boolean => defaults.headers.has(name) || own?.has(name) === true;
  if (key !== undefined) list.push(KEY_HEADER, key);
  if (options.json !== undefined && !named('content-type')) list.push('content-type', 'application/json');
  if (defaults.traceparent !== undefined && !named('traceparent')) {
    const traceparent = traceOf(defaults.traceparent);
    if (traceparent !== undefined) list.push('traceparent', traceparent);
  }
  return list;
}

function pathComplaint(path: unknown): string | undefined {
  if (typeof path === 'string' && PATH.test(path)) return undefined;
  return 'the path must begin with "/" and be percent-encoded (encodeURIComponent)';
}

/** The caller's key wins, whether it came as the option or as a header in any letter case; two different ones are a mistake. */
function callerKey(option: string | undefined, header: string | undefined): string | undefined {
  if (option !== undefined && header !== undefined && option !== header) {
    throw new ReplaysafeError('RS_CLIENT_KEY_INVALID', {
      detail: 'idempotencyKey and the header name two different keys',
    });
  }
  const key = option ?? header;
  return key === undefined ? undefined : checkedKey(key);
}

/** A trace that is none, or cannot be had, must not fail a payment. */
function traceOf(current: () => string | undefined): string | undefined {
  try {
    const traceparent = current();
    return traceparent !== undefined && TRACEPARENT.test(traceparent) ? traceparent : undefined;
  } catch {
    return undefined;
  }
}

/** Undefined for what has no JSON form: a function, something that contains itself, a BigInt. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

function bodyOf({ json, body }: CallOptions): string | Uint8Array | null {
  if (json !== undefined) {
    const text = jsonOf(json);
    if (text === undefined || body !== undefined) {
      throw new ReplaysafeError('RS_CLIENT_BODY_NOT_REPLAYABLE', {
        detail: text === undefined ? 'json has no JSON form' : 'json and body exclude each other',
      });
    }
    return text;
  }
  if (body === undefined) return null;
  // The caller may reuse its buffer between two tries; ours must not change.
  if (body instanceof Uint8Array) return Uint8Array.from(body);
  if (typeof body === 'string') return body;
  throw new ReplaysafeError('RS_CLIENT_BODY_NOT_REPLAYABLE', { detail: 'give a string, bytes, or json' });
}
