import { createHash } from 'node:crypto';
import { canonicalJson } from './canonical-json.js';
import type { HttpRequest, RouteOptions } from './http.js';
import { lengthPrefixed } from './length-prefixed.js';

/** The recipe below. A record is judged by the recipe it was written with, so a new one gets a new number. */
export const FINGERPRINT_VERSION = 1;

const JSON_TYPE = /^application\/(?:json|[^/]+\+json)$/;

/**
 * What makes two requests the same, as SHA-256: method, path, query pairs by name (pairs of one name keep their order), media
 * type, and the body: JSON in canonical form where nothing is lost by it, else the bytes as they arrived. Other headers and
 * the host are left out.
 */
export function fingerprint(request: HttpRequest, custom?: RouteOptions['fingerprint']): Buffer {
  const hash = createHash('sha256');
  lengthPrefixed(hash, [String(FINGERPRINT_VERSION), request.method.toUpperCase(), request.path]);
  if (custom !== undefined) return lengthPrefixed(hash, ['custom', custom(request)]).digest();
  const query = sortedQuery(request.query);
  const type = mediaType(request.headers['content-type']);
  return lengthPrefixed(hash, ['request', String(query.length), ...query, type, ...bodyFields(request, type)]).digest();
}

function sortedQuery(query: string): string[] {
  if (query === '') return [];
  const nameOf = (pair: string): string => pair.split('=', 1)[0] ?? '';
  return query.split('&').sort((one, other) => compare(nameOf(one), nameOf(other)));
}

function compare(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

function mediaType(contentType: string | undefined): string {
  return contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The first field says how to read the second, so that a raw body never meets a canonical one. */
function bodyFields(request: HttpRequest, type: string): (string | Uint8Array)[] {
  const encoding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (encoding !== '' && encoding !== 'identity') return [`encoded ${encoding}`, request.body];
  const canonical = JSON_TYPE.test(type) ? canonicalBody(request.body) : undefined;
  return canonical === undefined ? ['raw', request.body] : ['json', canonical];
}

function canonicalBody(body: Uint8Array): string | undefined {
  try {
    return canonicalJson(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body));
  } catch {
    // Not UTF-8, hence not JSON.
    return undefined;
  }
}
