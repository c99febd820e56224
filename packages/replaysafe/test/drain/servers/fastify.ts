import { Readable } from 'node:stream';
import { fastify } from 'fastify';
import { DOWNLOAD, drainLifecycle, events, pieces, say, slowly, withWebSockets } from './serving.js';

const lifecycle = drainLifecycle();
const app = fastify({ bodyLimit: 10_000_000 });
lifecycle.server(app.server);
// Fastify's own close comes when nothing is left to be closed: it would end idle connections at once.
lifecycle.pool({ name: 'fastify', end: () => app.close() });
withWebSockets(app.server);
app.addHook('onRequest', (request, reply, done) => {
  if (lifecycle.health(request.raw, reply.raw)) reply.hijack();
  else done();
});
app.get('/fast', () => 'fast');
app.get<{ Querystring: { ms: string } }>('/slow', async (request) => {
  await slowly(request.query.ms);
  return 'slow';
});
app.get('/stream', (_request, reply) => reply.send(Readable.from(pieces())));
app.get('/download', (_request, reply) => reply.send(DOWNLOAD));
app.post('/upload', () => 'taken');
app.get('/sse', (_request, reply) => {
  reply.hijack();
  events(reply.raw);
});
await app.listen({ port: 0, host: '127.0.0.1' });
await say(lifecycle, app.server);
