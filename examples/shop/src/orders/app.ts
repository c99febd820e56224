import Fastify, { type FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { Idempotency } from 'replaysafe/idempotency';
import { idempotencyPlugin } from 'replaysafe/adapters/http/fastify';
import type { Tasks } from 'replaysafe/tasks';
import { exportRoutes, type ordersTasks } from './exports.js';
import { findOrder, insertOrder, parseNewOrder, type Order } from './order.js';

declare module 'replaysafe/adapters/http/fastify' {
  interface FastifyIdempotencyTypes {
    tx: pg.PoolClient;
  }
}

export interface OrdersAppOptions {
  readonly pool: pg.Pool;
  readonly idempotency: Idempotency<pg.PoolClient>;
  readonly tasks: Tasks<pg.PoolClient, typeof ordersTasks>;
  /** Tells of a placed order, in the transaction that wrote it. */
  readonly announce: (tx: pg.PoolClient, order: Order) => Promise<void>;
  /** Called when an order is committed and its answer sent; nothing may depend on it. */
  readonly committed: (order: Order) => Promise<void> | void;
}

/** The HTTP side of orders. The order and its event are written by the transaction that also holds the stored answer. */
export async function ordersApp({
  pool,
  idempotency,
  tasks,
  announce,
  committed,
}: OrdersAppOptions): Promise<FastifyInstance> {
  const app = Fastify();
  await app.register(idempotencyPlugin, { idempotency });
  const placedBy = new WeakMap<object, Order>();

  app.post(
    '/orders',
    {
      config: { idempotency: 'required' },
      onResponse: async (request, reply) => {
        const placed = placedBy.get(request);
        if (placed !== undefined && reply.statusCode === 201) await committed(placed);
      },
    },
    async (request, reply) => {
      const order = parseNewOrder(request.body);
      if (typeof order === 'string') return reply.code(400).send({ status: 400, detail: order });

      const { tx } = request.idempotency;
      const placed = await insertOrder(tx, order);
      await announce(tx, placed);
      placedBy.set(request, placed);
      return reply.code(201).header('location', `/orders/${placed.orderId}`).send(placed);
    },
  );

  app.get<{ Params: { id: string } }>('/orders/:id', async (request, reply) => {
    const order = await findOrder(pool, request.params.id);
    return order ?? reply.code(404).send({ status: 404, detail: 'there is no such order' });
  });

  exportRoutes(app, tasks);

  await app.ready();
  return app;
}
