import { createServer, type RequestListener, type Server } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo, type Socket } from 'node:net';
import { fastify } from 'fastify';
import { afterAll, describe, expect, it } from 'vitest';
import { createLifecycle, type LifecycleOptions } from '../../src/lifecycle/index.js';
import { createFakeClock, waitForEvent } from '../../src/testing/index.js';
import { get, rawConnect } from './raw-client.js';
import { latch, quickLifecycle, serveOn } from './serving.js';

const timeout = 20_000;

const servers = new Set<Server>();
afterAll(() => {
  for (const server of servers) server.closeAllConnections();
});

/** Generous ends, since they cost nothing where the line falls quiet; each test that waits for one sets its own. */
function lifecycleFor(server: Server, given: LifecycleOptions = {}) {
  const lifecycle = createLifecycle({ lameDuckMs: 0, httpDrainMs: 10_000, quietMs: 100, lingerMs: 50, ...given });
  lifecycle.server(server);
  lifecycle.started();
  servers.add(server);
  return lifecycle;
}

async function serve(handler: RequestListener, given?: LifecycleOptions) {
  const server = createServer(handler);
  const lifecycle = lifecycleFor(server, given);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, lifecycle, port: (server.address() as AddressInfo).port };
}

const responses = (received: string) => received.split('HTTP/1.1 ').slice(1);
const saysClose = (response: string) => /^connection: close\r$/im.test(response);

/** Resolves when the server has read something from the connection that is not a whole request. */
async function readFrom(socket: Socket): Promise<void> {
  while (socket.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
}

const drained = (server: string) => waitForEvent('lifecycle.http-drained', (event) => event.server === server);

/** A handler that answers when it is told to. */
function gate() {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  let arrive: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => (arrive = resolve));
  const handler: RequestListener = (request, response) => {
    arrive();
    void opened.then(() => response.end(`answer to ${String(request.url)}`));
  };
  return { handler, arrived, open };
}

describe.concurrent('the drain of an HTTP server', { timeout }, () => {
  it('tells the client of a request in flight to leave, and of one that comes after', async () => {
    const { handler, arrived, open } = gate();
    const { lifecycle, port } = await serve(handler, { lameDuckMs: 500 });
    const early = await rawConnect(port);
    early.send(get('/early'));
    await arrived;
    const stopping = lifecycle.stop();
    const late = await rawConnect(port);
    late.send(get('/late'));
    open();
    expect(await Promise.all([early.ended, late.ended])).toEqual(['fin', 'fin']);
    for (const client of [early, late]) {
      expect(client.received()).toContain('200 OK');
      expect(saysClose(client.received())).toBe(true);
    }
    expect((await stopping).exitCode).toBe(0);
  });

  it('R-SHUT-HTTP-1 serves an idle connection that wakes up before the line is quiet', async () => {
    const { lifecycle, port } = await serve((_, response) => response.end('served'), { quietMs: 500 });
    const idle = await rawConnect(port);
    idle.send(get('/first'));
    await idle.sees('served');
    const unused = await rawConnect(port);
    const stopping = lifecycle.stop();
    idle.send(get('/second'));
    unused.send(get('/third'));
    expect(await Promise.all([idle.ended, unused.ended])).toEqual(['fin', 'fin']);
    expect(responses(idle.received())).toHaveLength(2);
    expect(responses(unused.received())).toHaveLength(1);
    expect((await stopping).http).toMatchObject([{ requests: 2, cut: 0, lateAfterFin: 0 }]);
  });

  it.each([
    [
      'at once',
      (answer: () => void) => {
        answer();
      },
    ],
    ['later', (answer: () => void) => void setImmediate(answer)],
  ])('answers all requests of a pipeline, and says close on the last only (handler answers %s)', async (_, when) => {
    const { lifecycle, port } = await serve(
      (request, response) => {
        when(() => response.end(`answer to ${String(request.url)}`));
      },
      { lameDuckMs: 300 },
    );
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send(get('/1') + get('/2') + get('/3'));
    expect(await client.ended).toBe('fin');
    const answers = responses(client.received());
    expect(answers.map((answer) => /answer to (\S+)/.exec(answer)?.[1])).toEqual(['/1', '/2', '/3']);
    expect(answers.map(saysClose)).toEqual([false, false, true]);
    expect((await stopping).exitCode).toBe(0);
  });

  it('takes its word back when another request arrives behind one that is not answered yet', async () => {
    const { handler, arrived, open } = gate();
    const { server, lifecycle, port } = await serve(handler, { lameDuckMs: 300 });
    const client = await rawConnect(port);
    client.send(get('/1'));
    await arrived;
    const stopping = lifecycle.stop();
    client.send(get('/2'));
    await once(server, 'request');
    open();
    expect(await client.ended).toBe('fin');
    expect(responses(client.received()).map(saysClose)).toEqual([false, true]);
    expect((await stopping).exitCode).toBe(0);
  });

  it('waits for a request that has arrived in part, head or body', async () => {
    const { lifecycle, port } = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString()));
      request.on('end', () => response.end(`got ${body}`));
    });
    const head = await rawConnect(port);
    head.send('GET /half HTTP/1.1\r\nHos');
    const body = await rawConnect(port);
    body.send('POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nfirst');
    // Another server, without half requests, shows when the line has been quiet for long enough.
    lifecycle.server(createServer(), { name: 'idle' });
    const idleDrained = drained('idle');
    const stopping = lifecycle.stop();
    await idleDrained;
    head.send('t: localhost\r\n\r\n');
    body.send(' last');
    expect(await Promise.all([head.ended, body.ended])).toEqual(['fin', 'fin']);
    expect(head.received()).toContain('200 OK');
    expect(body.received()).toContain('got first last');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0, timedOut: 0 }, {}] });
  });

  it('answers 408 to a request that is still half-way at the deadline', async () => {
    const clock = createFakeClock();
    const { server, lifecycle, port } = await serve((_, response) => response.end(), { httpDrainMs: 2_000, clock });
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = await rawConnect(port);
    client.send('GET /half HTTP/1.1\r\nHos');
    const [socket] = await accepted;
    await readFrom(socket);
    const stopping = lifecycle.stop();
    await clock.advance(1_500);
    expect(await client.ended).toBe('fin');
    expect(client.received()).toContain('408 Request Timeout');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0, timedOut: 1 }] });
  });

  it('delivers an answer that was given before the body of the request had arrived', async () => {
    const { lifecycle, port } = await serve((_, response) => response.writeHead(413).end('too large'), {
      lameDuckMs: 300,
      lingerMs: 500,
    });
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send(`POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${8 * 1024 * 1024}\r\n\r\n`);
    await client.sees('too large');
    client.send('x'.repeat(4 * 1024 * 1024));
    expect(await client.ended).toBe('fin');
    expect(client.received()).toContain('too large');
    expect((await stopping).exitCode).toBe(0);
  });

  it('does not execute a request that crosses our FIN, and reports it', async () => {
    const seen: string[] = [];
    const { lifecycle, port } = await serve(
      (request, response) => {
        seen.push(String(request.url));
        response.end();
      },
      { lingerMs: 1_000 },
    );
    const client = await rawConnect(port, { stay: true });
    client.send(get('/first'));
    await client.sees('200 OK');
    const stopping = lifecycle.stop();
    expect(await client.ended).toBe('fin');
    client.send(get('/crossed'));
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 0, lateAfterFin: 1 }] });
    expect(seen).toEqual(['/first']);
  });

  it('R-SHUT-CFG-2 cuts what is left at the deadline, and counts it', async () => {
    const { handler, arrived } = gate();
    const clock = createFakeClock();
    const { lifecycle, port } = await serve(handler, { httpDrainMs: 2_000, clock });
    const client = await rawConnect(port);
    client.send(get('/never'));
    await arrived;
    const stopping = lifecycle.stop();
    await clock.advance(1_900);
    expect(await stopping).toMatchObject({
      exitCode: 124,
      http: [{ cut: 1 }],
      steps: [{ name: 'http', outcome: 'forced' }],
    });
  });

  it('sends what a handler answers when its own deadline has come, and says that it was forced', async () => {
    const lifecycle = quickLifecycle({ httpDrainMs: 400, lingerMs: 20 });
    const began = latch();
    const server = createServer((_, response) => {
      began.open();
      lifecycle.signalsFor('http').deadline.addEventListener('abort', () => {
        response.writeHead(503).end('rolled back');
      });
    });
    const port = await serveOn(lifecycle, server);
    const client = await rawConnect(port);
    client.send(get('/'));
    await began.opened;
    const report = await lifecycle.stop();
    expect(report).toMatchObject({ exitCode: 124, http: [{ cut: 0 }], steps: [{ name: 'http', outcome: 'forced' }] });
    expect(client.received()).toContain('503');
    expect(client.received()).toContain('rolled back');
  });

  it('closes a server that never listened, and one that was closed before', async () => {
    const unused = createServer();
    const closed = createServer();
    closed.listen(0);
    await once(closed, 'listening');
    const lifecycle = lifecycleFor(unused);
    lifecycle.server(closed);
    closed.close();
    expect((await lifecycle.stop()).exitCode).toBe(0);
  });

  it('keeps a management server until the pools are closed', async () => {
    const management = createServer((request, response) => {
      if (!lifecycle.health(request, response)) response.writeHead(404).end();
    });
    const { lifecycle } = await serve((_, response) => response.end());
    lifecycle.server(management, { name: 'management', management: true });
    management.listen(0, '127.0.0.1');
    await once(management, 'listening');
    const { port } = management.address() as AddressInfo;
    let atTheEnd: number[] = [];
    lifecycle.pool({
      name: 'pool',
      stop: async () => {
        const [live, ready] = await Promise.all([
          fetch(`http://127.0.0.1:${port}/health/live`),
          fetch(`http://127.0.0.1:${port}/health/ready`),
        ]);
        atTheEnd = [live.status, ready.status];
      },
    });
    expect((await lifecycle.stop()).exitCode).toBe(0);
    expect(atTheEnd).toEqual([200, 503]);
    expect(management.listening).toBe(false);
  });

  it('works for a Fastify server, which is closed behind it by its own means', async () => {
    const app = fastify();
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    app.get('/slow', async () => {
      const { stopping } = lifecycle.signalsFor('http');
      begin();
      await once(stopping, 'abort');
      return 'slow';
    });
    const lifecycle = lifecycleFor(app.server);
    lifecycle.pool({ name: 'fastify', usedBy: ['http'], stop: () => app.close() });
    await app.listen({ port: 0, host: '127.0.0.1' });
    const client = await rawConnect((app.server.address() as AddressInfo).port);
    client.send(get('/slow'));
    await begun;
    const report = await lifecycle.stop();
    expect(await client.ended).toBe('fin');
    expect(client.received()).toContain('slow');
    expect(report.exitCode).toBe(0);
    expect(saysClose(client.received())).toBe(true);
  });
});
