import { Pool } from 'undici';
import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { deadlineAfter, pause, systemClock } from '../ports/clock.js';
import { silentLogger } from '../ports/logger.js';
import { systemRandom } from '../ports/random.js';
import type { Resource } from '../ports/stop.js';
import { backoffDelay } from '../retry/backoff.js';
import { prepareCall, type CallOptions, type HttpMethod, type PreparedCall } from './call.js';
import { parseClientOptions, type HttpClientOptions } from './http-client-options.js';
import { failureOf, isRead, mayRepeat, retryAfterMs } from './policy.js';
import { httpResponse, isRetryableAnswer, type HttpResponse } from './response.js';

/** A client of one remote system, with a connection pool of its own. */
export interface HttpClient extends Resource {
  /**
   * Sends one operation, perhaps several times, always with the same key and the same bytes. Any answer that is not worth a
   * further try is returned, whatever its status.
   *
   * @throws RS_CLIENT_KEY_REQUIRED before anything is sent: a write without a key
   * @throws RS_CLIENT_SYSTEM_UNAVAILABLE nothing was executed
   * @throws RS_CLIENT_TIMEOUT a read got no answer in time
   * @throws RS_CLIENT_OUTCOME_UNKNOWN a write got no answer and may have been executed
   * @throws RS_CLIENT_STOPPED the process stopped during the wait before the next try, or the client is stopped
   * @throws RS_CLIENT_ABORTED the caller's signal ended it: nothing was sent, or it was a read
   * @throws RS_CLIENT_REQUEST_INVALID before anything is sent: a path or header that no request can have
   */
  request(method: HttpMethod, path: string, options?: CallOptions): Promise<HttpResponse>;
  get(path: string, options?: CallOptions): Promise<HttpResponse>;
  post(path: string, options?: CallOptions): Promise<HttpResponse>;
  put(path: string, options?: CallOptions): Promise<HttpResponse>;
  patch(path: string, options?: CallOptions): Promise<HttpResponse>;
  delete(path: string, options?: CallOptions): Promise<HttpResponse>;
  /** Waits for running calls, then closes the pool; destroys it when `deadline` aborts. */
  stop(deadline?: AbortSignal): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** When a call ends whatever is still to be tried. */
interface GiveUp {
  readonly signal: AbortSignal;
  /** The caller's own signal, one of those that abort `signal`. */
  readonly caller: AbortSignal | undefined;
  /** By the monotonic clock. */
  readonly endsAt: number;
}

type TryResult = { readonly response: HttpResponse } | { readonly failure: ReplaysafeError };

/**
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const settings = parseClientOptions(options);
  const clock = options.clock ?? systemClock;
  const random = options.random ?? systemRandom;
  const logger = options.logger ?? silentLogger;
  const { name, timeouts, signals } = settings;
  const pool = new Pool(settings.origin, {
    connections: settings.connections,
    // One request at a time on a connection: behind a pipelined one, a reset would leave the outcome of both unknown.
    pipelining: 1,
    connectTimeout: timeouts.connectMs,
    headersTimeout: timeouts.headersMs,
    bodyTimeout: timeouts.bodyMs,
    maxResponseSize: settings.maxResponseBytes,
  });
  let stopped: Promise<void> | undefined;

  async function request(method: HttpMethod, path: string, callOptions: CallOptions = {}): Promise<HttpResponse> {
    const call = prepareCall(method, settings.basePath + path, callOptions, settings.headers);
    const totalMs = callOptions.timeoutMs ?? timeouts.totalMs;
    if (stopped !== undefined) throw new ReplaysafeError('RS_CLIENT_STOPPED');
    if (callOptions.signal?.aborted)
      throw new ReplaysafeError('RS_CLIENT_ABORTED', { cause: callOptions.signal.reason });
    const parents = [callOptions.signal, signals?.deadline].filter((signal) => signal !== undefined);
    const total = deadlineAfter(clock, totalMs, parents.length > 0 ? AbortSignal.any(parents) : undefined);
    try {
      return await sendUntilAnswered(call, {
        signal: total.signal,
        caller: callOptions.signal,
        endsAt: clock.monotonicMs() + totalMs,
      });
    } finally {
      total.dispose();
    }
  }

  async function sendUntilAnswered(call: PreparedCall, giveUp: GiveUp): Promise<HttpResponse> {
    const tries = mayRepeat(call) ? settings.retry.tries : 1;
    for (let attempt = 1; ; attempt++) {
      const result = await tryOnce(call, attempt, giveUp);
      const wait = attempt < tries ? waitBeforeNext(result, attempt, giveUp) : undefined;
      if (wait === undefined) return settle(result);
      emit('client.backed-off', { client: name, method: call.method, attempt, delayMs: wait });
      await pause(clock, wait, AbortSignal.any([giveUp.signal, ...(signals ? [signals.stopping] : [])]));
      if (giveUp.signal.aborted) return settle(result);
      if (signals?.stopping.aborted) return settleStopped(result);
    }
  }

  /** Undefined where another try is not worth it: the answer is final, or the wait it asks for does not fit the deadline. */
  function waitBeforeNext(result: TryResult, attempt: number, giveUp: GiveUp): number | undefined {
    if (giveUp.signal.aborted) return undefined;
    if ('failure' in result && !result.failure.retryable) return undefined;
    if ('response' in result && !isRetryableAnswer(result.response)) return undefined;
    const asked = 'response' in result ? retryAfterMs(result.response.headers['retry-after'], clock.now()) : 0;
    const { baseMs, capMs } = settings.retry;
    const wait = Math.max(asked, backoffDelay({ attempt, baseMs, capMs, random }));
    return clock.monotonicMs() + wait < giveUp.endsAt ? wait : undefined;
  }

  async function tryOnce(call: PreparedCall, attempt: number, giveUp: GiveUp): Promise<TryResult> {
    const startedAt = clock.monotonicMs();
    const { method, path, headers, body } = call;
    emit('client.attempted', { client: name, method, attempt });
    try {
      const answer = await pool.request({ method, path, headers, body, signal: giveUp.signal });
      const bytes = new Uint8Array(await answer.body.arrayBuffer());
      const response = httpResponse(answer.statusCode, answer.headers, bytes, attempt);
      const durationMs = clock.monotonicMs() - startedAt;
      emit('client.answered', { client: name, method, attempt, status: response.status, durationMs });
      return { response };
    } catch (cause) {
      const failure = readGivenUp(call, giveUp, cause) ?? failureOf(cause, !isRead(method));
      emit('client.failed', { client: name, method, attempt, code: failure.code });
      logger.info({ client: name, method, attempt, code: failure.code }, 'a try ended without an answer');
      return { failure };
    }
  }

  function stop(deadline?: AbortSignal): Promise<void> {
    stopped ??= new Promise<void>((resolve) => {
      const force = (): void => void pool.destroy().then(resolve, resolve);
      if (deadline?.aborted) {
        force();
        return;
      }
      deadline?.addEventListener('abort', force, { once: true });
      void pool.close().then(resolve, resolve);
    });
    return stopped;
  }

  const as = (method: HttpMethod) => (path: string, callOptions?: CallOptions) => request(method, path, callOptions);
  return {
    name: `http-client:${name}`,
    request,
    get: as('GET'),
    post: as('POST'),
    put: as('PUT'),
    patch: as('PATCH'),
    delete: as('DELETE'),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  };
}

/** A read that we ended ourselves has no outcome to be unknown; why it ended is known better than the pool can tell. */
function readGivenUp(call: PreparedCall, giveUp: GiveUp, cause: unknown): ReplaysafeError | undefined {
  if (!isRead(call.method) || !giveUp.signal.aborted) return undefined;
  return new ReplaysafeError(giveUp.caller?.aborted ? 'RS_CLIENT_ABORTED' : 'RS_CLIENT_TIMEOUT', { cause });
}

function settle(result: TryResult): HttpResponse {
  if ('failure' in result) throw result.failure;
  return result.response;
}

/** An answer, and an outcome that is unknown, say more than the stop does. */
function settleStopped(result: TryResult): HttpResponse {
  if ('failure' in result && result.failure.code !== 'RS_CLIENT_OUTCOME_UNKNOWN') {
    throw new ReplaysafeError('RS_CLIENT_STOPPED', { cause: result.failure });
  }
  return settle(result);
}
