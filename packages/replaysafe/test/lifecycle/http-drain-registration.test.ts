import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { get, rawConnect } from './raw-client.js';
import { latch, quickLifecycle, serveOn } from './serving.js';

const serveAll: RequestListener = (_, response) => void response.end('served');

describe.concurrent('a server and the lifecycle', () => {
  it('registered twice it is drained once', async () => {
    const lifecycle = quickLifecycle();
    const server = createServer(serveAll);
    lifecycle.server(server, { name: 'first' });
    const port = await serveOn(lifecycle, server);
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send(get('/'));
    await client.sees('served');
    expect((await stopping).http).toMatchObject([{ server: 'first', requests: 1 }]);
  });

  it('registered behind listen(), it knows an older connection from its next request on', async () => {
    const gate = latch();
    const arrived = latch();
    const server = createServer((request, response) => {
      if (request.url === '/slow') {
        arrived.open();
        void gate.opened.then(() => response.end('slow'));
      } else response.end('served');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = await rawConnect((server.address() as AddressInfo).port);
    client.send(get('/early'));
    await client.sees('served');
    const lifecycle = quickLifecycle();
    lifecycle.server(server);
    lifecycle.started();
    client.send(get('/slow'));
    await arrived.opened;
    const stopping = lifecycle.stop();
    gate.open();
    expect(await client.ended).toBe('fin');
    expect(client.received()).toContain('slow');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });

  it('four sockets of a browser that never send anything do not hold the drain: spare connections', async () => {
    const lifecycle = quickLifecycle();
    const port = await serveOn(lifecycle, createServer(serveAll));
    const spare = await Promise.all(Array.from({ length: 4 }, () => rawConnect(port)));
    const report = await lifecycle.stop();
    expect(await Promise.all(spare.map(({ ended }) => ended))).toEqual(['fin', 'fin', 'fin', 'fin']);
    expect(report.exitCode).toBe(0);
    expect(report.durationMs).toBeLessThan(2_000);
  });

  it("node's keep-alive timer closes nothing in the drain: 5 s are shorter than many a lame duck", async () => {
    const lifecycle = quickLifecycle({ lameDuckMs: 1_400 });
    const server = createServer(serveAll);
    // Node adds a second of its own.
    server.keepAliveTimeout = 50;
    const port = await serveOn(lifecycle, server);
    const client = await rawConnect(port);
    client.send(get('/first'));
    await client.sees('served');
    // The timer starts when the response is over on this side.
    while (lifecycle.traffic()[0]?.requests !== 0) await new Promise((resolve) => setImmediate(resolve));
    const stopping = lifecycle.stop();
    const lameDuck = new Promise((resolve) => setTimeout(resolve, 1_200));
    await Promise.race([client.ended, lameDuck]);
    client.send(get('/second'));
    expect(await client.ended).toBe('fin');
    expect(client.received().split('HTTP/1.1 200')).toHaveLength(3);
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 1, lateAfterFin: 0 }] });
  });

  it('R-SHUT-HTTP-1 delivers all of a response that was ended but not sent: the client has 6 % of the body', async () => {
    const bytes = 32 * 1024 * 1024;
    const begun = latch();
    const server = createServer((_, response) => {
      response.end(Buffer.alloc(bytes, 'x'));
      begun.open();
    });
    const lifecycle = quickLifecycle({ quietMs: 20 });
    const port = await serveOn(lifecycle, server);
    const client = connect({ port, host: '127.0.0.1' });
    client.pause();
    client.write(get('/download'));
    await begun.opened;
    const idle = quickLifecycle({ quietMs: 20 });
    idle.server(createServer());
    const stopping = lifecycle.stop();
    // A drain with nothing to wait for is over; this one is not.
    await idle.stop();
    expect(lifecycle.traffic()).toMatchObject([{ requests: 1 }]);
    let received = 0;
    client.on('data', (chunk: Buffer) => (received += chunk.length)).resume();
    await once(client, 'end');
    expect(received).toBeGreaterThan(bytes);
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });
});
