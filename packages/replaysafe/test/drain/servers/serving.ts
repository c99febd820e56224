import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { TIMES } from './times.js';
import { createLifecycle, installSignals, type HttpServer, type Lifecycle } from '../../../src/lifecycle/index.js';

export const DOWNLOAD = Buffer.alloc(32 * 1_048_576, 'x');
const PIECES = 10;
const PIECE = 'x'.repeat(16);

export function drainLifecycle(): Lifecycle {
  const lifecycle = createLifecycle({ name: 'drained', ...TIMES });
  installSignals(lifecycle);
  return lifecycle;
}

/** WebSockets beside whatever the framework serves, as `ws` does it. */
export function withWebSockets(server: HttpServer): void {
  new WebSocketServer({ server: server as never, path: '/ws' });
}

/** Listens, and tells the test where. */
export async function say(lifecycle: Lifecycle, server: HttpServer): Promise<void> {
  if (!server.listening) {
    (server as Server).listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  lifecycle.started();
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
}

export const slowly = (ms: unknown): Promise<void> => pause(Number(ms));

/** Pieces that come one by one, for a second. */
export async function* pieces(): AsyncGenerator<string> {
  for (let n = 0; n < PIECES; n++) {
    await pause(100);
    yield PIECE;
  }
}

/** Events without an end; nobody but the drain ends them. */
export function events(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const timer = setInterval(() => response.write('data: tick\n\n'), 50);
  response.once('close', () => {
    clearInterval(timer);
  });
}

/** The routes as `node:http` has them. */
export function plain(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  switch (pathname) {
    case '/slow':
      void slowly(searchParams.get('ms')).then(() => response.end('slow'));
      return;
    case '/stream':
      void (async () => {
        for await (const piece of pieces()) response.write(piece);
        response.end();
      })();
      return;
    case '/download':
      response.writeHead(200, { 'content-length': DOWNLOAD.length });
      response.end(DOWNLOAD);
      return;
    case '/upload':
      request.resume();
      request.once('end', () => response.end('taken'));
      return;
    case '/sse':
      events(response);
      return;
    default:
      response.end('fast');
  }
}
