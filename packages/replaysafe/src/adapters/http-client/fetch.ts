import type { CallOptions, HttpClient } from '../../client/index.js';
import { ReplaysafeError } from '../../errors.js';
import { endToEnd, knownMethod, pathInside, type CallExtras } from './target.js';

export type { CallExtras } from './target.js';

export interface ReplaysafeRequestInit extends RequestInit {
  readonly replaysafe?: CallExtras;
}

/** `fetch` for one remote system. */
export type ReplaysafeFetch = (input: string | URL | Request, init?: ReplaysafeRequestInit) => Promise<Response>;

const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * A `fetch` with the promise of the client: one key on every try, no write that could arrive twice without one, its breaker and
 * deadlines. Hand it to SDKs that take one. The key is the header `Idempotency-Key`, in any letter case.
 *
 * Differs from the global one: a redirect is returned, not followed; answers are not decompressed, and none is asked for; the
 * answer is read whole before the promise resolves; bodies that can be read only once are refused, other ones are sent byte for byte
 * on every try. Repeated headers of an answer, cookies too, are joined by `, `.
 *
 * @throws what `client.request` throws, and RS_CLIENT_REQUEST_INVALID for a URL of another system
 */
export function replaysafeFetch(client: HttpClient): ReplaysafeFetch {
  return async (input, init = {}) => {
    const { replaysafe, ...plain } = init;
    if (plain.body instanceof ReadableStream || isAsyncIterable(plain.body)) {
      throw new ReplaysafeError('RS_CLIENT_BODY_NOT_REPLAYABLE', {
        detail: 'give fetch a string, bytes, a form or a blob',
      });
    }
    const path = pathInside(client, input instanceof Request ? input.url : String(input));
    // Request knows the rules: content types, forms, blobs, how init overrides a request.
    const request = new Request(input instanceof Request ? input : new URL(client.baseUrl + path), plain);
    const signal = plain.signal ?? (input instanceof Request ? input.signal : undefined);
    const options: CallOptions = {
      ...replaysafe,
      headers: endToEnd(request.headers),
      ...(request.body === null ? {} : { body: new Uint8Array(await request.arrayBuffer()) }),
      ...(signal === undefined ? {} : { signal }),
    };
    const answer = await client.request(knownMethod(request.method), path, options);
    const body = WITHOUT_BODY.has(answer.status) ? null : Uint8Array.from(answer.body);
    const response = new Response(body, { status: answer.status, headers: answer.headers });
    Object.defineProperty(response, 'url', { value: client.baseUrl + path });
    return response;
  };
}

function isAsyncIterable(body: unknown): boolean {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}
