import { setTimeout as sleep } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import { taskKind, type Tasks, type TaskHandler } from 'replaysafe/tasks';
import { asFields, idComplaint } from '../service/money.js';
import type { Queryable } from './order.js';
import { ordersSql } from './sql.js';

/** What an export is asked with, and what it gives. */
export interface ExportRequest {
  readonly customerId: string;
}
export interface ExportResult {
  readonly customerId: string;
  readonly orders: number;
  readonly totalMinor: number;
}

export const ordersTasks = { export: taskKind<ExportRequest, ExportResult>({ timeoutMs: 300_000 }) };

/**
 * An operation that takes longer than a request may, and longer than the drain of a deploy: answered with 202 at once, and
 * asked for until it is done (R-SHUT-HTTP-3). Which instance carries it out, and whether one dies of it, does not matter.
 */
export function exportRoutes(app: FastifyInstance, tasks: Tasks<pg.PoolClient, typeof ordersTasks>): void {
  app.post('/exports', { config: { idempotency: 'required' } }, async (request, reply) => {
    const fields = asFields(request.body) ?? {};
    const complaint = idComplaint(fields, 'customerId');
    if (complaint !== undefined) return reply.code(400).send({ status: 400, detail: complaint });

    const guarded = request.idempotency;
    const input = { customerId: String(fields['customerId']) };
    const { id } = await tasks.enqueue(guarded.tx, { kind: 'export', key: guarded.keyFor('export'), input });
    return reply.code(202).header('location', `/operations/${id}`).send({ operationId: id, status: 'PENDING' });
  });

  app.get<{ Params: { id: string } }>('/operations/:id', async (request, reply) => {
    const task = await tasks.get(request.params.id);
    if (!task) return reply.code(404).send({ status: 404, detail: 'there is no such operation' });
    const ended = task.finishedAt !== undefined;
    if (!ended) reply.header('retry-after', '1');
    return { operationId: task.id, status: task.status, result: task.result, error: task.lastError };
  });
}

const STEPS = 12;

/** Reads an archive that is slow, piece by piece. A stop, or a lost lease, ends it between two pieces; the next try begins anew. */
export function runExport(db: Queryable, stepMs: number): TaskHandler<ExportRequest, ExportResult> {
  return async ({ input: { customerId }, signal }) => {
    for (let step = 0; step < STEPS; step++) await sleep(stepMs, undefined, { signal });
    const { rows } = await db.query(ordersSql.ofCustomer, [customerId]);
    const [row] = rows as { orders: number; total_minor: number }[];
    return { customerId, orders: row?.orders ?? 0, totalMinor: row?.total_minor ?? 0 };
  };
}
