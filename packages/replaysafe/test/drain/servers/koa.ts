import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import Koa from 'koa';
import { DOWNLOAD, drainLifecycle, events, pieces, say, slowly, withWebSockets } from './serving.js';

const lifecycle = drainLifecycle();
const app = new Koa();
app.use(async (ctx) => {
  if (lifecycle.health(ctx.req, ctx.res)) {
    ctx.respond = false;
    return;
  }
  switch (ctx.path) {
    case '/slow':
      await slowly(ctx.query['ms']);
      ctx.body = 'slow';
      return;
    case '/stream':
      ctx.body = Readable.from(pieces());
      return;
    case '/download':
      ctx.body = DOWNLOAD;
      return;
    case '/upload':
      await text(ctx.req);
      ctx.body = 'taken';
      return;
    case '/sse':
      ctx.respond = false;
      events(ctx.res);
      return;
    default:
      ctx.body = 'fast';
  }
});
const server = lifecycle.server(createServer((request, response) => void app.callback()(request, response)));
withWebSockets(server);
await say(lifecycle, server);
