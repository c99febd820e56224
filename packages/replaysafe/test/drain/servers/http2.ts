import { createServer } from 'node:http2';
import { drainLifecycle, say, slowly } from './serving.js';

const lifecycle = drainLifecycle();
const server = lifecycle.server(
  createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (pathname === '/slow') void slowly(searchParams.get('ms')).then(() => response.end('slow'));
    else response.end('fast');
  }),
);
await say(lifecycle, server);
