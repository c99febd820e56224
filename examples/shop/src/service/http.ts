import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { Lifecycle } from 'replaysafe/lifecycle';
import type { Registry } from 'prom-client';

/** A server that answers the probes and `/metrics` before the application sees anything. */
export function createServiceServer(lifecycle: Lifecycle, registry: Registry, application: RequestListener): Server {
  const server = createServer((request, response) => {
    if (lifecycle.health(request, response)) return;
    if (request.method === 'GET' && request.url === '/metrics') {
      void answerMetrics(registry, response);
      return;
    }
    application(request, response);
  });
  lifecycle.server(server);
  return server;
}

/** Resolves when the server can be reached. */
export async function listen(server: Server, port: number, host: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

export function notFound(_request: IncomingMessage, response: ServerResponse): void {
  sendProblem(response, 404, 'there is nothing here');
}

export function sendProblem(response: ServerResponse, status: number, detail: string): void {
  sendJson(response, status, { type: 'about:blank', status, detail }, 'application/problem+json');
}

export function sendJson(response: ServerResponse, status: number, body: unknown, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type });
  response.end(JSON.stringify(body));
}

async function answerMetrics(registry: Registry, response: ServerResponse): Promise<void> {
  try {
    const text = await registry.metrics();
    response.writeHead(200, { 'content-type': registry.contentType });
    response.end(text);
  } catch {
    sendProblem(response, 500, 'the metrics could not be collected');
  }
}
