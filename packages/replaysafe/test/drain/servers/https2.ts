import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';
import { drainLifecycle, say, slowly } from './serving.js';

const pem = (name: string): Buffer => readFileSync(new URL(`../../lifecycle/tls/${name}.pem`, import.meta.url));
const lifecycle = drainLifecycle();
const server = lifecycle.server(
  createSecureServer({ key: pem('key'), cert: pem('cert'), allowHTTP1: true }, (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost');
    if (pathname === '/slow') void slowly(searchParams.get('ms')).then(() => response.end('slow'));
    else response.end('fast');
  }),
);
await say(lifecycle, server);
