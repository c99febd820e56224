import http from 'node:http';
import { withIdempotency } from '../../../src/adapters/http/node.js';
import { listen, TENANT_HEADER, type StartServer } from './harness.js';

export const startNode: StartServer = async (idempotency, routes) => {
  const listeners = routes.map((route) => {
    const { key, fingerprint } = route;
    const listener = withIdempotency(
      idempotency,
      (request, context) => route.handle(context, Buffer.from(request.bodyBytes)),
      {
        ...(key && { key }),
        ...(fingerprint && { fingerprint }),
        principal: (request) => request.headers[TENANT_HEADER],
      },
    );
    return { ...route, listener };
  });
  const server = http.createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0];
    const route = listeners.find((each) => each.path === path && each.methods.includes(request.method ?? ''));
    if (route) void route.listener(request, response);
    else response.writeHead(404).end();
  });
  const url = await listen(server);
  return {
    url,
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        server.closeAllConnections();
      }),
  };
};
