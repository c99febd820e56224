import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Lifecycle } from '../../lifecycle/index.js';
import type { NestHttpAdapter } from './types.js';

interface FrameworkRequest extends IncomingMessage {
  /** Fastify's request has the one of Node inside. */
  readonly raw?: IncomingMessage;
}

interface FrameworkResponse extends ServerResponse {
  readonly raw?: ServerResponse;
  hijack?(): unknown;
}

interface Routes {
  get(path: string, handler: (request: FrameworkRequest, response: FrameworkResponse) => void): unknown;
}

/**
 * Answers the probes in front of everything that the application adds later: guards, prefixes, parsers and catch-all routes
 * must not stand between the kubelet and the state.
 */
export function serveHealth(adapter: NestHttpAdapter | undefined, lifecycle: Lifecycle): void {
  const routes = adapter?.getInstance() as Partial<Routes> | undefined;
  if (typeof routes?.get !== 'function') return;
  for (const path of ['/health/live', '/health/ready']) {
    routes.get(path, (request, response) => {
      // Fastify would otherwise send a reply of its own.
      response.hijack?.();
      lifecycle.health(request.raw ?? request, response.raw ?? response);
    });
  }
}
