import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import type express5 from 'express';
import { DOWNLOAD, drainLifecycle, events, pieces, say, slowly, withWebSockets } from './serving.js';

/** Express of the version that is named in the first argument: what is used of it here is the same in both. */
const express = createRequire(import.meta.url)(process.argv[2] === '4' ? 'express4' : 'express') as typeof express5;

const lifecycle = drainLifecycle();
const app = express();
app.use((request, response, next) => {
  if (!lifecycle.health(request, response)) next();
});
app.get('/fast', (_request, response) => {
  response.send('fast');
});
app.get('/slow', (request, response) => {
  void slowly(request.query['ms']).then(() => response.send('slow'));
});
app.get('/stream', (_request, response) => {
  Readable.from(pieces()).pipe(response);
});
app.get('/download', (_request, response) => {
  response.send(DOWNLOAD);
});
app.post('/upload', express.text({ limit: '10mb' }), (_request, response) => {
  response.send('taken');
});
app.get('/sse', (_request, response) => {
  events(response);
});
const server = lifecycle.server(createServer(app));
withWebSockets(server);
await say(lifecycle, server);
