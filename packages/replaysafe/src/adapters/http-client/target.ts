import type { HttpClient } from '../../client/index.js';
import { ReplaysafeError } from '../../errors.js';

const ABSOLUTE = /^[a-z][a-z\d+.-]*:/i;

/**
 * The path of a URL inside of what a client talks to. A URL without an origin is one of that system.
 * @throws RS_CLIENT_REQUEST_INVALID for a URL of another system: its breaker, its slots and its deadlines would be the wrong ones
 */
export function pathInside(client: Pick<HttpClient, 'baseUrl'>, given: string): string {
  const base = new URL(client.baseUrl);
  const text = ABSOLUTE.test(given) ? given : `${client.baseUrl}/${given.replace(/^\/+/, '')}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const root = base.pathname.replace(/\/$/, '');
  const inside =
    url?.origin === base.origin &&
    url.username === '' &&
    (url.pathname === root || url.pathname.startsWith(`${root}/`));
  if (!inside) throw new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { detail: `it is not under ${client.baseUrl}` });
  return `${url.pathname.slice(root.length) || '/'}${url.search}`;
}

/** What a call may say in addition to what its library knows. */
export interface CallExtras {
  /** Wins over nothing: two different keys, here and in the header `Idempotency-Key`, are refused. */
  readonly idempotencyKey?: string;
  /** `false`: exactly one try, and a write needs no key. */
  readonly retry?: false;
  /** Declares that a PUT or DELETE does the same however often it arrives; it then needs no key. */
  readonly repeatable?: true;
  /** Whole call with all tries and waits, in milliseconds. */
  readonly timeoutMs?: number;
}

const METHODS = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** @throws RS_CLIENT_REQUEST_INVALID for a method that the client does not know */
export function knownMethod(given: string): (typeof METHODS)[number] {
  const method = METHODS.find((name) => name === given.toUpperCase());
  if (method === undefined) throw new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { detail: `method ${given}` });
  return method;
}

/** Of the connection and the body as they were to be sent; the client makes its own. */
const NOT_OURS = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding']);

export function endToEnd(headers: Iterable<readonly [string, string]>): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !NOT_OURS.has(name.toLowerCase())));
}
