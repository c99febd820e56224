import type { CallOptions, HttpClient, HttpResponse } from '../../client/index.js';
import { ReplaysafeError } from '../../errors.js';
import { queryOf } from './axios-params.js';
import { endToEnd, knownMethod, pathInside, type CallExtras } from './target.js';

export type { CallExtras } from './target.js';

/** The part of axios's request configuration that is read. */
export interface AxiosRequest {
  readonly url?: string;
  readonly baseURL?: string;
  readonly method?: string;
  readonly params?: unknown;
  readonly paramsSerializer?: unknown;
  readonly data?: unknown;
  readonly headers: object;
  readonly timeout?: number;
  readonly signal?: unknown;
  readonly cancelToken?: unknown;
  readonly responseType?: string;
  readonly validateStatus?: ((status: number) => boolean) | null;
}

/** An answer as axios wants it. */
export interface AxiosAnswer<Config> {
  readonly data: unknown;
  readonly status: number;
  readonly statusText: string;
  readonly headers: Record<string, string>;
  readonly config: Config;
  readonly request: undefined;
}

/**
 * Sends what axios prepares through the client: `axios.create({ adapter: axiosAdapter(client) })`. Interceptors and transforms of
 * axios stay; its own retries (axios-retry) must go, since they repeat whole operations with whatever key an interceptor then
 * makes. The key is the header `Idempotency-Key`, in any letter case, or `replaysafe: { idempotencyKey }` in the request's
 * configuration, where `retry: false` and `repeatable: true` stand too. `timeout` is that of the whole call.
 *
 * Rejections are axios errors by their shape (`axios.isAxiosError`) whose `code` is the library's where there was no answer.
 *
 * @throws what `client.request` throws; RS_CLIENT_REQUEST_INVALID for a URL of another system, `cancelToken` and the
 * `responseType`s `stream`, `blob`, `document`
 */
export function axiosAdapter(
  client: HttpClient,
): <Config extends AxiosRequest>(config: Config) => Promise<AxiosAnswer<Config>> {
  return async (config) => {
    const response = await send(client, config).catch((error: unknown) => {
      throw error instanceof ReplaysafeError ? shapedLikeAxios(error, config) : error;
    });
    const binary = config.responseType === 'arraybuffer';
    const answer = {
      data: binary ? Buffer.from(response.body) : response.text(),
      status: response.status,
      statusText: '',
      headers: { ...response.headers },
      config,
      request: undefined,
    };
    if (config.validateStatus?.(response.status) ?? true) return answer;
    const error = new Error(`Request failed with status code ${response.status}`);
    const code = response.status >= 500 ? 'ERR_BAD_RESPONSE' : 'ERR_BAD_REQUEST';
    throw Object.assign(shapedLikeAxios(error, config), { code, response: answer, status: response.status });
  };
}

async function send(client: HttpClient, config: AxiosRequest): Promise<HttpResponse> {
  refuseUnsupported(config);
  const url = combined(config);
  const query = queryOf(config.params, config.paramsSerializer);
  const path = pathInside(client, query === '' ? url : `${url}${url.includes('?') ? '&' : '?'}${query}`);
  const extras = (config as { readonly replaysafe?: CallExtras }).replaysafe;
  const options: CallOptions = {
    ...extras,
    headers: plainHeaders(config.headers),
    ...bodyOf(config.data),
    ...(config.timeout !== undefined && config.timeout > 0 ? { timeoutMs: config.timeout } : {}),
    ...(config.signal instanceof AbortSignal ? { signal: config.signal } : {}),
  };
  return client.request(knownMethod(config.method ?? 'get'), path, options);
}

function refuseUnsupported({ cancelToken, signal, responseType }: AxiosRequest): void {
  const complaint =
    cancelToken !== undefined
      ? 'cancelToken: use signal'
      : signal !== undefined && signal !== null && !(signal instanceof AbortSignal)
        ? 'signal must be an AbortSignal'
        : responseType !== undefined && ['stream', 'blob', 'document'].includes(responseType)
          ? `responseType ${responseType}: answers are read whole`
          : undefined;
  if (complaint !== undefined) throw new ReplaysafeError('RS_CLIENT_REQUEST_INVALID', { detail: complaint });
}

function combined({ baseURL, url = '' }: AxiosRequest): string {
  if (baseURL === undefined || baseURL === '' || /^([a-z][a-z\d+.-]*:)?\/\//i.test(url)) return url;
  return url === '' ? baseURL : `${baseURL.replace(/\/+$/, '')}/${url.replace(/^\/+/, '')}`;
}

/** Of axios's own class of headers, or a plain object. */
function plainHeaders(given: object): Record<string, string> {
  const written = Object.entries(given).filter(([, value]) => value !== undefined && value !== null && value !== false);
  return endToEnd(written.map(([name, value]) => [name, String(value)]));
}

/** axios has made text or bytes of everything that can be sent again. */
function bodyOf(data: unknown): Pick<CallOptions, 'body'> {
  if (data === undefined || data === null) return {};
  if (typeof data === 'string' || data instanceof Uint8Array) return { body: data };
  if (data instanceof ArrayBuffer) return { body: new Uint8Array(data) };
  throw new ReplaysafeError('RS_CLIENT_BODY_NOT_REPLAYABLE', {
    detail: 'give axios a string, bytes, or what it makes JSON of',
  });
}

function shapedLikeAxios(error: Error, config: AxiosRequest): Error {
  // The configuration holds the key and perhaps a token: it must not be in a log because an error is.
  Object.defineProperty(error, 'config', { value: config, enumerable: false });
  return Object.assign(error, { isAxiosError: true });
}
