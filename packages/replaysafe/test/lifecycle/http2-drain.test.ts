import { once } from 'node:events';
import { connect, constants, createServer, type ClientHttp2Session, type Http2ServerResponse } from 'node:http2';
import { describe, expect, it } from 'vitest';
import { createFakeClock } from '../../src/testing/index.js';
import { type LifecycleOptions } from '../../src/lifecycle/index.js';
import { latch, quickLifecycle, serveOn } from './serving.js';

const ignore = (): void => undefined;

async function serve(handler: (path: string, response: Http2ServerResponse) => void, given?: LifecycleOptions) {
  const lifecycle = quickLifecycle(given);
  const server = createServer((request, response) => {
    handler(request.url, response);
  });
  const port = await serveOn(lifecycle, server);
  const open = async (): Promise<ClientHttp2Session> => {
    const session = connect(`http://127.0.0.1:${port}`);
    session.on('error', ignore);
    await once(session, 'remoteSettings');
    return session;
  };
  return { lifecycle, open };
}

async function ask(session: ClientHttp2Session, path: string): Promise<{ status: unknown; body: string }> {
  const stream = session.request({ ':path': path });
  let body = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>];
  await once(stream, 'close');
  return { status: headers[':status'], body };
}

describe.concurrent('the drain of an HTTP/2 server', () => {
  it('tells an idle session to go and exits: HTTP/2 server never closes', async () => {
    const { lifecycle, open } = await serve((_, response) => response.end('served'));
    const session = await open();
    const goaway = once(session, 'goaway') as Promise<[number, number]>;
    const closed = once(session, 'close');
    const stopping = lifecycle.stop();
    // Nothing is taken back: the highest stream there can be, and no error.
    expect((await goaway).slice(0, 2)).toEqual([constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1]);
    await closed;
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });

  it('R-SHUT-HTTP-1 finishes the streams in flight, however long after the line fell quiet', async () => {
    const gate = latch();
    const arrived = latch();
    const { lifecycle, open } = await serve(
      (_, response) => {
        arrived.open();
        void gate.opened.then(() => response.end('slow'));
      },
      { quietMs: 20 },
    );
    const session = await open();
    const idle = await open();
    const answer = ask(session, '/slow');
    await arrived.opened;
    const stopping = lifecycle.stop();
    // By now an idle session has been closed.
    await once(idle, 'close');
    expect(lifecycle.traffic()).toMatchObject([{ connections: 1, requests: 1 }]);
    gate.open();
    expect(await answer).toEqual({ status: 200, body: 'slow' });
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 0, cut: 0 }] });
  });

  it('gives a session that begins during the lame duck one answer, and tells it to go', async () => {
    const { lifecycle, open } = await serve((_, response) => response.end('served'), { lameDuckMs: 300 });
    const stopping = lifecycle.stop();
    const session = await open();
    const goaway = once(session, 'goaway');
    expect(await ask(session, '/late')).toEqual({ status: 200, body: 'served' });
    await goaway;
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ requests: 1, cut: 0 }] });
  });

  it('R-SHUT-CFG-2 cuts a stream at the deadline, and counts it', async () => {
    const clock = createFakeClock();
    const arrived = latch();
    const { lifecycle, open } = await serve(
      () => {
        arrived.open();
      },
      { httpDrainMs: 2_000, clock },
    );
    const session = await open();
    session.request({ ':path': '/never' }).on('error', ignore);
    await arrived.opened;
    const stopping = lifecycle.stop();
    await clock.advance(1_900);
    expect(await stopping).toMatchObject({ exitCode: 124, http: [{ cut: 1 }] });
  });

  it('ends a stream of events and lets the application go on writing', async () => {
    const begun = latch();
    let events: Http2ServerResponse | undefined;
    const { lifecycle, open } = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n');
      events = response;
      begun.open();
    });
    const answer = ask(await open(), '/events');
    await begun.opened;
    const stopping = lifecycle.stop();
    events?.write('data: 2\n\n');
    events?.end();
    expect(await answer).toEqual({ status: 200, body: 'data: 1\n\n' });
    expect(await stopping).toMatchObject({ exitCode: 0, http: [{ cut: 0 }] });
  });
});
