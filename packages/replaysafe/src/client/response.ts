import { ReplaysafeError } from '../errors.js';

/** An answer, read to its end. */
export interface HttpResponse {
  readonly status: number;
  /** Lower-case names; a repeated header is joined by `, `. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** Whether the other side says that it answered from its store (`Idempotent-Replayed: true`). */
  readonly replayed: boolean;
  /** How many tries it took. */
  readonly tries: number;
  text(): string;
  /**
   * This answer, if its status is one of these (any 2xx, if none is named).
   * @throws RS_CLIENT_ANSWER_TEMPORARY when the same call, later, with the same key, may get another answer: retryable, so that a
   * consumer's `prepare` that throws it waits without using up an attempt
   * @throws RS_CLIENT_ANSWER_REFUSED for any other
   */
  expect(...statuses: readonly number[]): HttpResponse;
  /** @throws SyntaxError when the body is not JSON */
  json<T = unknown>(): T;
}

export function httpResponse(
  status: number,
  rawHeaders: Readonly<Record<string, string | string[] | undefined>>,
  body: Uint8Array,
  tries: number,
): HttpResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(rawHeaders)) {
    if (value !== undefined) headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  const text = (): string => Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8');
  const response: HttpResponse = {
    status,
    headers,
    body,
    tries,
    replayed: headers['idempotent-replayed'] === 'true',
    text,
    json: <T>() => JSON.parse(text()) as T,
    expect: (...statuses) => {
      if (statuses.length > 0 ? statuses.includes(status) : status >= 200 && status < 300) return response;
      const code = isRetryableAnswer(response) ? 'RS_CLIENT_ANSWER_TEMPORARY' : 'RS_CLIENT_ANSWER_REFUSED';
      throw new ReplaysafeError(code, { detail: `status ${status}` });
    },
  };
  return response;
}

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Whether the same call, later, may get another answer. */
export function isRetryableAnswer(response: HttpResponse): boolean {
  const problem = problemOf(response);
  if (problem?.retryable === false) return false;
  if (response.status === 409) return problem?.type?.endsWith('idempotency-in-progress') === true;
  // A replayed failure is the stored answer: it will not change.
  return RETRYABLE_STATUS.has(response.status) && !response.replayed;
}

function problemOf(response: HttpResponse): { type?: string; retryable?: boolean } | undefined {
  if (!response.headers['content-type']?.startsWith('application/problem+json')) return undefined;
  try {
    const problem: unknown = response.json();
    return typeof problem === 'object' && problem !== null ? problem : undefined;
  } catch {
    return undefined;
  }
}
