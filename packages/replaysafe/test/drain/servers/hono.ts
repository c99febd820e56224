import { createServer, type Server } from 'node:http';
import { Readable } from 'node:stream';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { DOWNLOAD, drainLifecycle, pieces, say, slowly, withWebSockets } from './serving.js';

const lifecycle = drainLifecycle();
const app = new Hono();
app.get('/fast', (c) => c.text('fast'));
app.get('/slow', async (c) => {
  await slowly(c.req.query('ms'));
  return c.text('slow');
});
app.get('/stream', (c) => c.body(Readable.toWeb(Readable.from(pieces(), { objectMode: false })) as ReadableStream));
app.get('/download', (c) => c.body(DOWNLOAD));
app.post('/upload', async (c) => {
  await c.req.text();
  return c.text('taken');
});
app.get('/sse', (c) => {
  let timer: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      timer = setInterval(() => {
        controller.enqueue(Buffer.from('data: tick\n\n'));
      }, 50);
    },
    cancel: () => {
      clearInterval(timer);
    },
  });
  return c.body(body, 200, { 'content-type': 'text/event-stream' });
});
const server = lifecycle.server(createAdaptorServer({ fetch: app.fetch, createServer }) as Server);
withWebSockets(server);
await say(lifecycle, server);
