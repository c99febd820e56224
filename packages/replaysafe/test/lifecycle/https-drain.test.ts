import { readFileSync } from 'node:fs';
import { createServer as createPlain, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect as connectHttp2, createSecureServer } from 'node:http2';
import { createServer } from 'node:https';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { type HttpServer, type Lifecycle, type LifecycleOptions } from '../../src/lifecycle/index.js';
import { get } from './raw-client.js';
import { quickLifecycle, serveOn } from './serving.js';

// Self-signed for localhost; nothing else uses it.
const pem = (name: string): string => readFileSync(new URL(`tls/${name}.pem`, import.meta.url), 'utf8');
const identity = { key: pem('key'), cert: pem('cert') };

const serveRequest = (_: IncomingMessage, response: ServerResponse): void => {
  response.end('served');
};
const servers = {
  http: () => createPlain(serveRequest),
  https: () => createServer(identity, serveRequest),
  'https with HTTP/2 allowed': () =>
    createSecureServer({ ...identity, allowHTTP1: true }, (_, response) => void response.end('served')),
};

async function serve(server: HttpServer, given: LifecycleOptions): Promise<{ lifecycle: Lifecycle; port: number }> {
  const lifecycle = quickLifecycle(given);
  return { lifecycle, port: await serveOn(lifecycle, server) };
}

type Ending = 'left' | 'refused' | 'lost' | 'reset';

/** Asks again and again, on a new connection when told to close, until nobody listens any more. */
async function neverLeaves(port: number, tls: boolean, served: () => void): Promise<Ending> {
  for (;;) {
    const ending = await useConnection(port, tls, served);
    if (ending !== 'left') return ending;
  }
}

function useConnection(port: number, tls: boolean, served: () => void): Promise<Ending> {
  return new Promise((resolve) => {
    const host = '127.0.0.1';
    const socket = tls
      ? connectTls({ port, host, rejectUnauthorized: false, ALPNProtocols: ['http/1.1'] })
      : connectTcp({ port, host });
    let asked = false;
    let received = '';
    const ask = (): void => {
      asked = true;
      received = '';
      socket.write(get('/'));
    };
    socket.once(tls ? 'secureConnect' : 'connect', ask);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (!received.endsWith('served')) return;
      asked = false;
      served();
      if (/^connection: close\r$/im.test(received)) {
        socket.end(() => {
          resolve('left');
        });
      } else ask();
    });
    socket.once('end', () => {
      resolve(asked ? 'lost' : 'left');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => {
      resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'reset');
    });
  });
}

describe('clients that never leave', () => {
  it.each(['http', 'https'] as const)('are told nothing by a reset: %s', async (kind) => {
    const { lifecycle, port } = await serve(servers[kind](), { lameDuckMs: 50, httpDrainMs: 2_400, quietMs: 100 });
    let answers = 0;
    const clients = Array.from({ length: 10 }, () => neverLeaves(port, kind !== 'http', () => answers++));
    while (answers < 50) await new Promise((resolve) => setImmediate(resolve));
    const report = await lifecycle.stop();
    // Each ends where the listener is gone: refused, never in the middle.
    expect(await Promise.all(clients)).toEqual(clients.map(() => 'refused'));
    expect(report).toMatchObject({ exitCode: 0, http: [{ cut: 0, lateAfterFin: 0 }] });
  });
});

describe('a TLS handshake', () => {
  it('that has begun is waited for like a request that has arrived in part', async () => {
    const server = servers.https();
    const { lifecycle, port } = await serve(server, {});
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connectTcp({ port, host: '127.0.0.1' });
    client.write('\x16\x03\x01');
    const [socket] = await accepted;
    while (socket.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
    const idle = quickLifecycle({ quietMs: 200 });
    idle.server(servers.https());
    const stopping = lifecycle.stop();
    // A drain with nothing to wait for, though it takes longer to call the line quiet.
    await idle.stop();
    expect(lifecycle.state).toBe('draining');
    client.destroy();
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });
});

describe('a server of both HTTP/1.1 and HTTP/2', () => {
  it('drains the clients of both', async () => {
    const { lifecycle, port } = await serve(servers['https with HTTP/2 allowed'](), { lameDuckMs: 200 });
    const session = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
    await once(session, 'remoteSettings');
    const closed = once(session, 'close');
    let answers = 0;
    const first = useConnection(port, true, () => answers++);
    while (answers === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(lifecycle.traffic()).toMatchObject([{ connections: 2 }]);
    const report = await lifecycle.stop();
    await closed;
    expect(await first).toBe('left');
    expect(report).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });
});
