import { ReplaysafeError } from '../errors.js';
import { invalidHeader, lowerCased } from './headers.js';
import { checkedKey, KEY_HEADER } from './key.js';
import { refuseKeylessWrite } from './policy.js';

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

/** One operation, made ready once: nothing in it changes between tries. */
export interface PreparedCall {
  readonly method: HttpMethod;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | null;
  readonly key: string | undefined;
  readonly retry: boolean;
  readonly repeatable: boolean;
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

/**
 * Refuses here what could never be sent: later it would look like a failure of the remote system, worth another try.
 * @throws RS_OPTION_UNKNOWN, RS_CLIENT_REQUEST_INVALID, RS_CLIENT_KEY_REQUIRED, RS_CLIENT_KEY_INVALID,
 * RS_CLIENT_BODY_NOT_REPLAYABLE
 */
export function prepareCall(
  method: HttpMethod,
  path: string,
  options: CallOptions,
  clientHeaders: Readonly<Record<string, string>>,
): PreparedCall {
  for (const name of Object.keys(options)) {
    if (!CALL_OPTIONS.has(name))
      throw new ReplaysafeError('RS_OPTION_UNKNOWN', { detail: `${method} call: "${name}"` });
  }
  const complaint = pathComplaint(path) ?? invalidHeader(options.headers ?? {});
  if (complaint !== undefined) throw new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { detail: complaint });
  const headers = lowerCased({ ...lowerCased(clientHeaders), ...lowerCased(options.headers ?? {}) });
  const key = callerKey(options.idempotencyKey, headers[KEY_HEADER]);
  if (key !== undefined) headers[KEY_HEADER] = key;
  const body = bodyOf(options);
  if (options.json !== undefined) headers['content-type'] ??= 'application/json';
  const call = {
    method,
    path,
    headers,
    body,
    key,
    retry: options.retry ?? true,
    repeatable: options.repeatable ?? false,
  };
  refuseKeylessWrite(call);
  return call;
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

function bodyOf({ json, body }: CallOptions): string | Uint8Array | null {
  if (json !== undefined) {
    const text = JSON.stringify(json) as string | undefined;
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
