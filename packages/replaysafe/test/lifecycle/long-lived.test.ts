import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { type LifecycleOptions } from '../../src/lifecycle/index.js';
import { createFakeClock } from '../../src/testing/index.js';
import { get, rawConnect } from './raw-client.js';
import { latch, quickLifecycle, serveOn } from './serving.js';

async function serve(handler: RequestListener, given?: LifecycleOptions) {
  const lifecycle = quickLifecycle(given);
  const server = createServer(handler);
  const port = await serveOn(lifecycle, server);
  return { lifecycle, server, port };
}

const upgrade = (protocol: string): string =>
  `GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
const switching = (protocol: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
const CLOSE_1001 = '\x88\x02\x03\xe9';

const openEvents: RequestListener = (_, response) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
  response.write('data: 1\n\n');
};

describe.concurrent('long-lived connections in the drain', () => {
  it('are told at once: an SSE is ended, a slow request answered, hooks run', async () => {
    const slow = latch();
    const arrived = latch();
    const { lifecycle, port } = await serve((request, response) => {
      if (request.url === '/events') openEvents(request, response);
      else {
        arrived.open();
        void slow.opened.then(() => response.end('slow'));
      }
    });
    let closed = false;
    lifecycle.pool({ name: 'pool', stop: () => Promise.resolve((closed = true)).then(() => undefined) });
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    const other = await rawConnect(port);
    other.send(get('/slow'));
    await arrived.opened;
    const stopping = lifecycle.stop();
    // The last chunk of a chunked response: its end, not a cut.
    await events.sees('\r\n0\r\n\r\n');
    slow.open();
    await other.sees('slow');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
    expect(closed).toBe(true);
  });

  it('a stream of events may be written to after we ended it', async () => {
    let response: ServerResponse | undefined;
    const { lifecycle, port } = await serve((request, given) => {
      response = given;
      openEvents(request, given);
    });
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    const stopping = lifecycle.stop();
    const errors: Error[] = [];
    response?.on('error', (error) => errors.push(error));
    const written = new Promise((resolve) => response?.write('data: 2\n\n', resolve));
    const ended = new Promise<void>((resolve) => response?.end(resolve));
    await Promise.all([written, ended]);
    expect((await stopping).exitCode).toBe(0);
    expect(errors).toEqual([]);
    expect(events.received()).not.toContain('data: 2');
  });

  it('a stream of events that begins in the lame duck is ended behind it', async () => {
    const { lifecycle, port } = await serve(openEvents, { lameDuckMs: 200 });
    const stopping = lifecycle.stop();
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    expect(events.received()).not.toContain('\r\n0\r\n\r\n');
    expect(await events.ended).toBe('fin');
    expect(events.received()).toContain('\r\n0\r\n\r\n');
    expect((await stopping).exitCode).toBe(0);
  });

  it('a registered one gets its own goodbye, once, and is waited for', async () => {
    const done = latch();
    let goodbyes = 0;
    const { lifecycle, port } = await serve((request, response) => {
      openEvents(request, response);
      lifecycle.longLived(response, () => {
        goodbyes++;
        response.write('event: bye\n\n');
        void done.opened.then(() => response.end());
      });
    });
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    const stopping = lifecycle.stop();
    await events.sees('event: bye');
    done.open();
    expect(await events.ended).toBe('fin');
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
    expect(goodbyes).toBe(1);
  });

  it('a stream of events whose end() throws stops nothing', async () => {
    const { lifecycle, port } = await serve((request, response) => {
      openEvents(request, response);
      response.end = () => {
        throw new Error('no end');
      };
    });
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    expect((await lifecycle.stop()).exitCode).toBe(0);
  });

  it('a goodbye that throws stops nothing', async () => {
    const logged: string[] = [];
    const log = (_: object, message: string): void => void logged.push(message);
    const { lifecycle, port } = await serve(
      (request, response) => {
        openEvents(request, response);
        lifecycle.longLived(response, () => {
          response.end();
          throw new Error('no goodbye');
        });
      },
      { logger: { debug: log, info: log, warn: log, error: log } },
    );
    const events = await rawConnect(port);
    events.send(get('/events'));
    await events.sees('data: 1');
    expect((await lifecycle.stop()).exitCode).toBe(0);
    expect(logged).toContain('a goodbye to a long-lived connection failed');
  });

  it.each([[undefined], [{}], [new WebSocketServer({ noServer: true })]])('longLived(%s) is refused', (given) => {
    const lifecycle = quickLifecycle();
    expect(() => {
      lifecycle.longLived(given as never, () => undefined);
    }).toThrow(expect.objectContaining({ code: 'RS_OPTION_INVALID' }));
  });

  it('a WebSocket of a library gets a close frame 1001, answers it and is gone', async () => {
    const { lifecycle, server, port } = await serve((_, response) => response.end());
    const sockets = new WebSocketServer({ server });
    sockets.on('connection', (socket) =>
      socket.on('message', (data) => {
        socket.send(data);
      }),
    );
    const client = new WebSocket(`ws://127.0.0.1:${port}`);
    await once(client, 'open');
    client.send('before');
    await once(client, 'message');
    const stopping = lifecycle.stop();
    expect((await once(client, 'close'))[0]).toBe(1001);
    const report = await stopping;
    expect(report).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
    // It did not wait for a client that had answered.
    expect(report.durationMs).toBeLessThan(900);
    sockets.close();
  });

  it('a WebSocket that does not answer the close frame holds the drain for a second', async () => {
    const clock = createFakeClock();
    const { lifecycle, server, port } = await serve((_, response) => response.end(), { clock });
    server.on('upgrade', (_, socket) => socket.write(switching('websocket')));
    const client = await rawConnect(port, { stay: true });
    client.send(upgrade('websocket'));
    await client.sees('101 Switching');
    const stopping = lifecycle.stop();
    await client.sees(CLOSE_1001);
    await clock.advance(1_200);
    expect(await client.ended).toBe('fin');
    await clock.advance(100);
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });

  it('a WebSocket whose handshake is not answered gets no frame before it', async () => {
    const { lifecycle, server, port } = await serve((_, response) => response.end());
    const upgraded = once(
      server.on('upgrade', () => undefined),
      'upgrade',
    ) as Promise<[unknown, Socket]>;
    const client = await rawConnect(port);
    client.send(upgrade('websocket'));
    const [, socket] = await upgraded;
    const stopping = lifecycle.stop();
    socket.write(switching('websocket'));
    await client.sees(CLOSE_1001);
    expect(client.received()).toBe(switching('websocket') + CLOSE_1001);
    client.socket.end();
    socket.end();
    expect((await stopping).exitCode).toBe(0);
  });

  it('another upgraded socket stays until the deadline, and is counted as cut', async () => {
    const clock = createFakeClock();
    const { lifecycle, server, port } = await serve((_, response) => response.end(), { clock, httpDrainMs: 2_000 });
    server.on('upgrade', (_, socket) => socket.write(switching('tunnel')));
    const client = await rawConnect(port);
    client.send(upgrade('tunnel'));
    await client.sees('101 Switching');
    const stopping = lifecycle.stop();
    await clock.advance(1_400);
    expect(lifecycle.traffic()).toMatchObject([{ connections: 1 }]);
    await clock.advance(100);
    expect(await stopping).toMatchObject({ exitCode: 124, http: [{ cut: 1 }] });
    expect(client.received()).toBe(switching('tunnel'));
  });

  it('a server that listens to no upgrade still serves the request as if it had not asked', async () => {
    const { lifecycle, server, port } = await serve((_, response) => response.end('plain'));
    const listener = (): void => undefined;
    server.on('upgrade', listener);
    server.removeListener('upgrade', listener);
    const client = await rawConnect(port);
    client.send(upgrade('websocket'));
    await client.sees('plain');
    expect((await lifecycle.stop()).exitCode).toBe(0);
  });
});
