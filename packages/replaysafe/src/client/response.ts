import type { IncomingHttpHeaders } from 'node:http';
import { ReplaysafeError } from '../errors.js';
import type { Clock } from '../ports/clock.js';
import type { Verdict } from './breaker.js';
import { retryAfterMs } from './policy.js';

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
  /** The wait that `Retry-After` asks for, in milliseconds; 0 where there is none. */
  readonly retryAfterMs: number;
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

/** Reads headers and body when somebody asks for them: most callers want the status and the JSON. */
export class ReceivedResponse implements HttpResponse {
  readonly status: number;
  readonly tries: number;
  readonly #received: IncomingHttpHeaders;
  readonly #chunks: readonly Buffer[];
  readonly #clock: Clock;
  #headers: Readonly<Record<string, string>> | undefined;
  #body: Uint8Array | undefined;

  constructor(status: number, headers: IncomingHttpHeaders, chunks: readonly Buffer[], tries: number, clock: Clock) {
    this.status = status;
    this.tries = tries;
    this.#received = headers;
    this.#chunks = chunks;
    this.#clock = clock;
  }

  get headers(): Readonly<Record<string, string>> {
    return (this.#headers ??= readHeaders(this.#received));
  }

  get body(): Uint8Array {
    return (this.#body ??= joined(this.#chunks));
  }

  get replayed(): boolean {
    return this.headers['idempotent-replayed'] === 'true';
  }

  get retryAfterMs(): number {
    return retryAfterMs(this.headers['retry-after'], this.#clock.now());
  }

  text(): string {
    const [first, second] = this.#chunks;
    if (first === undefined) return '';
    // Not chunk by chunk: a character may be cut by their border.
    return (second === undefined ? first : Buffer.concat(this.#chunks)).toString('utf8');
  }

  json<T>(): T {
    return JSON.parse(this.text()) as T;
  }

  expect(...statuses: readonly number[]): HttpResponse {
    const { status } = this;
    if (statuses.length > 0 ? statuses.includes(status) : status >= 200 && status < 300) return this;
    const code = isRetryableAnswer(this) ? 'RS_CLIENT_ANSWER_TEMPORARY' : 'RS_CLIENT_ANSWER_REFUSED';
    throw new ReplaysafeError(code, { detail: `status ${status}` });
  }
}

function readHeaders(received: IncomingHttpHeaders): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(received)) {
    if (value !== undefined) headers[name.toLowerCase()] = Array.isArray(value) ? value.join(', ') : value;
  }
  return headers;
}

/** A copy: the pieces are views of what the socket read, headers included. */
function joined(chunks: readonly Buffer[]): Uint8Array {
  const body = new Uint8Array(chunks.reduce((length, chunk) => length + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

const RETRYABLE_STATUS = new Set([408, 425, 429, 500, 502, 503, 504]);

/** Whether the same call, later, may get another answer. */
export function isRetryableAnswer(response: HttpResponse): boolean {
  if (response.status < 400) return false;
  const problem = problemOf(response);
  if (problem?.retryable === false) return false;
  if (response.status === 409) return problem?.type?.endsWith('idempotency-in-progress') === true;
  // A replayed failure is the stored answer: it will not change.
  return RETRYABLE_STATUS.has(response.status) && !response.replayed;
}

/** Answers given before anything is executed, by a limiter or a server that does not trust early data. */
export function isRefusedUnexecuted({ status }: HttpResponse): boolean {
  return status === 425 || status === 429;
}

/** What an answer says about the health of the remote system. */
export function verdictOf(response: HttpResponse): Verdict {
  const { status } = response;
  if (status < 500) return status === 408 || status === 429 ? 'ignored' : 'well';
  // A replayed failure comes from the store of a system that works.
  return response.replayed ? 'well' : 'failed';
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
