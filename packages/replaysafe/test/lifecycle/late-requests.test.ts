import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import { type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type LifecycleOptions } from '../../src/lifecycle/index.js';
import { onEvent } from '../../src/events.js';
import { get, rawConnect } from './raw-client.js';
import { latch, quickLifecycle, serveOn } from './serving.js';

async function serve(handler: RequestListener, given: LifecycleOptions = {}) {
  const lifecycle = quickLifecycle({ lateRequests: 'refuse', quietMs: 300, ...given });
  const server = createServer(handler);
  const port = await serveOn(lifecycle, server);
  return { lifecycle, server, port };
}

async function untilRead(socket: Socket, bytes: number): Promise<void> {
  while (socket.bytesRead < bytes) await new Promise((resolve) => setImmediate(resolve));
}

describe.concurrent("lateRequests: 'refuse'", () => {
  it('reads the whole body, then says 503, Retry-After and close; the application sees nothing', async () => {
    const seen: string[] = [];
    const { lifecycle, port } = await serve((request, response) => {
      seen.push(request.url!);
      response.end('served');
    });
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    const body = 'x'.repeat(500_000);
    client.send(`POST /late HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 * body.length}\r\n\r\n${body}`);
    // The answer is not there before the body is.
    await new Promise((resolve) => client.socket.write('', resolve));
    expect(client.received()).toBe('');
    client.send(body);
    expect(await client.ended).toBe('fin');
    expect(client.received()).toMatch(/^HTTP\/1\.1 503 .*\r\n/);
    expect(client.received()).toMatch(/^retry-after: 1\r$/im);
    expect(client.received()).toMatch(/^connection: close\r$/im);
    expect(seen).toEqual([]);
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 0, refused: 1, cut: 0 }] });
  });

  it('does not wait for a body of more than 1 MiB, and never resets', async () => {
    const { lifecycle, port } = await serve((_, response) => response.end('served'), { lingerMs: 1_000 });
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send('POST /late HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n');
    client.send('x'.repeat(2_000_000));
    await client.sees('503');
    client.send('x'.repeat(500_000));
    expect(await client.ended).toBe('fin');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ refused: 1 }] });
  });

  it('serves what was half-received when the refusal began', async () => {
    const { lifecycle, server, port } = await serve((_, response) => response.end('served'));
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = await rawConnect(port);
    client.send('GET /half HTTP/1.1\r\nHos');
    const [socket] = await accepted;
    await untilRead(socket, 10);
    const stopping = lifecycle.stop();
    const late = await rawConnect(port);
    late.send(get('/late'));
    // The refusal of the other shows that it has begun.
    await late.sees('503');
    client.send('t: localhost\r\n\r\n');
    await client.sees('served');
    expect(await client.ended).toBe('fin');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 1, refused: 1 }] });
  });
});

// By itself: the event does not say whose phase has begun.
describe("lateRequests: 'refuse' behind a lame duck", () => {
  it('serves the whole lame duck, and answers probes to the end', async () => {
    const refusing = latch();
    const subscription = onEvent('lifecycle.phase-started', ({ phase }) => {
      if (phase === 'http') refusing.open();
    });
    const { lifecycle, port } = await serve(
      (request, response) => {
        if (!lifecycle.health(request, response)) response.end('served');
      },
      { lameDuckMs: 150, quietMs: 400 },
    );
    const stopping = lifecycle.stop();
    const early = await rawConnect(port);
    early.send(get('/early'));
    await early.sees('served');
    await refusing.opened;
    const late = await rawConnect(port);
    late.send(get('/late'));
    await late.sees('HTTP/1.1 503');
    expect(late.received()).not.toContain('draining');
    const probe = await rawConnect(port);
    probe.send(get('/health/live'));
    await probe.sees('"state":"draining"');
    expect((await stopping).exitCode).toBe(0);
    subscription.unsubscribe();
  });
});

describe.concurrent("lateRequests: 'serve', the default", () => {
  it('serves what comes after the lame duck', async () => {
    const { lifecycle, port } = await serve((_, response) => response.end('served'), { lateRequests: 'serve' });
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send(get('/late'));
    await client.sees('served');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 1, refused: 0 }] });
  });
});
