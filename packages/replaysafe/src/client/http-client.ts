import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import type { Resource } from '../ports/stop.js';
import { prepareCall, type CallOptions, type HttpMethod, type PreparedCall } from './call.js';
import { createCore, type Core } from './core.js';
import { lowerCased } from './headers.js';
import { parseClientOptions, type HttpClientOptions } from './http-client-options.js';
import { KeyWatch } from './key-watch.js';
import type { HttpResponse } from './response.js';
import { RunningCall } from './running-call.js';

/** A client of one remote system, with a connection pool of its own. */
export interface HttpClient extends Resource {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /**
   * Sends one operation, perhaps several times, always with the same key and the same bytes. Any answer that is not worth a
   * further try is returned, whatever its status.
   *
   * @throws RS_CLIENT_KEY_REQUIRED before anything is sent: a write without a key
   * @throws RS_CLIENT_SYSTEM_UNAVAILABLE nothing was executed: no connection, or the circuit breaker is open; or it was a read
   * @throws RS_CLIENT_OVERLOADED nothing was sent: too many calls run and wait already
   * @throws RS_CLIENT_TIMEOUT no answer in time: to a read, or to a write that was not even sent
   * @throws RS_CLIENT_OUTCOME_UNKNOWN a write got no answer and may have been executed; `isOutcomeUnknown` reads its key
   * @throws RS_CLIENT_STOPPED the process stopped while the call waited for a slot or its next try, or cut a read; or the client is stopped
   * @throws RS_CLIENT_ABORTED the caller's signal ended it: nothing was sent, or it was a read
   * @throws RS_CLIENT_REQUEST_INVALID before anything is sent: a path or header that no request can have
   */
  request(method: HttpMethod, path: string, options?: CallOptions): Promise<HttpResponse>;
  get(path: string, options?: CallOptions): Promise<HttpResponse>;
  post(path: string, options?: CallOptions): Promise<HttpResponse>;
  put(path: string, options?: CallOptions): Promise<HttpResponse>;
  patch(path: string, options?: CallOptions): Promise<HttpResponse>;
  delete(path: string, options?: CallOptions): Promise<HttpResponse>;
  /** Ends waiting calls at once, waits for running ones, then closes the pool; ends them too when `deadline` aborts. */
  stop(deadline?: AbortSignal): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const NO_OPTIONS: CallOptions = {};

/**
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const settings = parseClientOptions(options);
  const core = createCore(options, settings);
  const { name, signals, money, traceparent, basePath } = settings;
  const defaults = { basePath, money, traceparent, headers: lowerCased(settings.headers) };
  const watch = settings.warnOnKeyMisuse ? new KeyWatch() : undefined;
  let stopped: Promise<void> | undefined;

  function request(method: HttpMethod, path: string, given: CallOptions = NO_OPTIONS): Promise<HttpResponse> {
    // Not async: an error of the caller's must be a rejection, and an async function would make a second promise.
    return new Promise((resolve, reject) => {
      const call = prepareCall(method, path, given, defaults);
      if (stopped !== undefined) throw new ReplaysafeError('RS_CLIENT_STOPPED');
      const { signal, timeoutMs } = given;
      if (signal?.aborted) throw new ReplaysafeError('RS_CLIENT_ABORTED', { cause: signal.reason });
      if (watch !== undefined) warnOfMisuse(core, watch, call, given);
      new RunningCall(core, call, timeoutMs ?? settings.timeouts.totalMs, signal, { resolve, reject });
    });
  }

  const stopWaiting = (): void => {
    core.stopping = true;
    for (const call of runningCalls(core)) call.stopWaiting();
  };
  const giveUp = (): void => {
    for (const call of runningCalls(core)) call.giveUp('stopped', undefined);
  };
  if (signals?.stopping.aborted) stopWaiting();
  signals?.stopping.addEventListener('abort', stopWaiting, { once: true });
  signals?.deadline.addEventListener('abort', giveUp, { once: true });

  function stop(deadline?: AbortSignal): Promise<void> {
    stopped ??= new Promise<void>((resolve) => {
      const ended = (): void => {
        deadline?.removeEventListener('abort', force);
        signals?.stopping.removeEventListener('abort', stopWaiting);
        signals?.deadline.removeEventListener('abort', giveUp);
        core.deadlines.close();
        resolve();
      };
      const force = (): void => {
        giveUp();
        void core.pool.destroy().then(ended, ended);
      };
      stopWaiting();
      if (deadline?.aborted) {
        force();
        return;
      }
      deadline?.addEventListener('abort', force, { once: true });
      void core.pool.close().then(ended, ended);
    });
    return stopped;
  }

  const as = (method: HttpMethod) => (path: string, callOptions?: CallOptions) => request(method, path, callOptions);
  return {
    name: `http-client:${name}`,
    baseUrl: settings.origin + basePath,
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

function runningCalls(core: Core): RunningCall[] {
  return core.deadlines.pending().filter((ending) => ending instanceof RunningCall);
}

function warnOfMisuse({ name, logger }: Core, watch: KeyWatch, call: PreparedCall, given: CallOptions): void {
  const misuse = watch.see(call, given.json ?? given.body);
  if (misuse === undefined) return;
  const { method } = call;
  emit('client.key-misused', { client: name, method, misuse });
  logger.warn(
    { client: name, method, misuse },
    misuse === 'two-keys-for-one-object'
      ? 'one object was sent with two keys: make the key outside of what is repeated'
      : 'one key was sent with two different requests: the second one will be refused, or answered with the first answer',
  );
}
