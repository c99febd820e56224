import { type IncomingMessage, type ServerResponse } from 'node:http';
import { pause, type Clock } from '../ports/clock.js';
import { type HttpDrain } from './http-drain.js';

const PRESTOP_PATH = '/-/prestop';

export interface Prestop {
  /** Whether the request has come in on a management server. */
  isManagement(request: IncomingMessage): boolean;
  /** Begins the stop unless it has begun; resolves when the propagation delay is over, counted from its beginning. */
  begin(): Promise<void>;
  stopBegun(lameDuckMs: number): void;
  /** Nobody is waited for any more: what HTTP served has ended. */
  release(): void;
  readonly onBegun: (listener: () => void) => () => void;
}

export function createPrestop(options: {
  readonly clock: Clock;
  /** Of the management servers; live. */
  readonly drains: readonly HttpDrain[];
  readonly stop: () => unknown;
}): Prestop {
  const { clock, drains } = options;
  const listeners = new Set<() => void>();
  const released = new AbortController();
  let begun = false;
  let endsAtMs: number | undefined;

  return {
    isManagement: (request) => drains.some((drain) => drain.serves(request.socket)),
    begin: async () => {
      if (!begun && endsAtMs === undefined) {
        begun = true;
        options.stop();
        for (const listener of listeners) listener();
      }
      await pause(clock, Math.max(0, (endsAtMs ?? 0) - clock.monotonicMs()), released.signal);
    },
    stopBegun: (lameDuckMs) => {
      endsAtMs = clock.monotonicMs() + lameDuckMs;
    },
    release: () => {
      released.abort();
    },
    onBegun: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Answers GET /-/prestop, for the pre-stop hook of an orchestrator, when the propagation delay is over. It begins a stop
 * and asks nobody who they are, so on a server that is not a management server it does not exist.
 *
 * @returns false, and nothing done, for any other request
 */
export function answerPrestop(prestop: Prestop, request: IncomingMessage, response: ServerResponse): boolean {
  if (request.method !== 'GET' || request.url?.split('?', 1)[0] !== PRESTOP_PATH) return false;
  if (!prestop.isManagement(request)) return false;
  void prestop.begin().then(() => {
    if (response.headersSent || response.destroyed) return;
    response.writeHead(200, { 'cache-control': 'no-store', 'content-length': '0' }).end();
  });
  return true;
}
