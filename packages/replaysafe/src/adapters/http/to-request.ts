import type { IncomingHttpHeaders } from 'node:http';
import type { HttpRequest, RequestHeaders } from '../../idempotency/index.js';

export interface ArrivedRequest {
  readonly method?: string | undefined;
  /** The request target as it was sent. */
  readonly url?: string | undefined;
  readonly headers: IncomingHttpHeaders;
}

export function toHttpRequest(arrived: ArrivedRequest, body: Uint8Array, principal: unknown): HttpRequest {
  const target = originForm(arrived.url ?? '/');
  const at = target.indexOf('?');
  return {
    method: arrived.method ?? 'GET',
    path: at < 0 ? target : target.slice(0, at),
    query: at < 0 ? '' : target.slice(at + 1),
    headers: joined(arrived.headers),
    body,
    principal,
  };
}

/** Clients of a proxy send `POST http://host/path`; the host is no part of the fingerprint. */
function originForm(url: string): string {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(url)?.[0];
  if (absolute === undefined) return url;
  const rest = url.slice(absolute.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function joined(headers: IncomingHttpHeaders): RequestHeaders {
  const flat: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(headers)) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  return flat;
}
