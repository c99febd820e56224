import fastify, { type FastifyInstance } from 'fastify';
import { idempotencyPlugin } from '../../../src/adapters/http/fastify.js';
import type { IdempotencyContext } from '../../../src/idempotency/index.js';
import { TENANT_HEADER, type Client, type StartServer } from './harness.js';

export const startFastify: StartServer = async (idempotency, routes) => {
  const app = fastify({ forceCloseConnections: true, exposeHeadRoutes: false });
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, body);
  });
  await app.register(idempotencyPlugin, {
    idempotency,
    principal: (request) => request.headers[TENANT_HEADER],
  });
  for (const { methods, path, key = 'required', fingerprint, handle } of routes) {
    app.route({
      method: [...methods],
      url: path,
      config: { idempotency: { key, ...(fingerprint && { fingerprint }) } },
      handler: async (request, reply) => {
        const body = request.body === undefined ? Buffer.alloc(0) : asBuffer(request.body);
        const answer = await handle(request.idempotency as IdempotencyContext<Client>, body);
        reply.code(answer.status);
        for (const [name, value] of Object.entries(answer.headers)) reply.header(name, value);
        return reply.send(answer.body instanceof Uint8Array ? Buffer.from(answer.body) : answer.body);
      },
    });
  }
  return listenOn(app);
};

export async function listenOn(app: FastifyInstance): Promise<{ url: string; close(): Promise<void> }> {
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  return { url, close: () => app.close() };
}

const asBuffer = (body: unknown): Buffer => (Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)));
