import { createServer } from 'node:http';
import { drainLifecycle, plain, say, withWebSockets } from './serving.js';

const lifecycle = drainLifecycle();
const server = lifecycle.server(
  createServer((request, response) => {
    if (!lifecycle.health(request, response)) plain(request, response);
  }),
);
withWebSockets(server);
await say(lifecycle, server);
