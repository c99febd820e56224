import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SqlExecutor, SqlPort } from 'replaysafe';
import type { Idempotency } from 'replaysafe/idempotency';
import { withIdempotency } from 'replaysafe/adapters/http/node';
import { notFound, sendJson, sendProblem } from '../service/http.js';
import { charge, chargesOf, parseChargeRequest, sendReceipt } from './charges.js';
import { parseFaults, type FaultBox } from './faults.js';

export interface ProviderAppOptions<Tx> {
  readonly sql: SqlPort<Tx>;
  readonly idempotency: Idempotency<Tx>;
  /** The guard `provider-without-keys` switched off: every request moves money. */
  readonly ignoresKeys: boolean;
  /** What `PUT /faults` sets; without it there is no such route. */
  readonly faults: FaultBox | undefined;
}

/**
 * The payment provider: somebody else's system, so it has a database and a memory of keys of its own.
 *
 * Faults come where they hurt: 503 before any work; the delay and the lost connection behind the commit, when the money
 * has moved and only the answer is missing.
 */
export function providerApp<Tx>({ sql, idempotency, ignoresKeys, faults }: ProviderAppOptions<Tx>): RequestListener {
  const guarded = withIdempotency(idempotency, (request, ctx) => answerCharge(ctx.sql, request.json()));

  const receipts = withIdempotency(idempotency, (request, ctx) => answerReceipt(ctx.sql, request.json()));

  const unguarded = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { status, headers, body } = await answerCharge(sql, JSON.parse((await buffer(request)).toString()));
    response.writeHead(status, headers);
    response.end(body);
  };

  const postCharge = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (faults?.hits('fail503')) {
      request.resume();
      sendProblem(response, 503, 'told to fail');
      return;
    }
    if (faults) spoilAnswer(response, faults);
    await (ignoresKeys ? unguarded : guarded)(request, response);
  };

  const route = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://provider');
    if (request.method === 'POST' && pathname === '/charges') {
      await postCharge(request, response);
    } else if (request.method === 'POST' && pathname === '/receipts') {
      await receipts(request, response);
    } else if (request.method === 'GET' && pathname === '/charges') {
      sendJson(response, 200, await chargesOf(sql, searchParams.get('orderId') ?? ''));
    } else if (faults && pathname === '/faults' && request.method === 'PUT') {
      await putFaults(faults, request, response);
    } else if (faults && pathname === '/faults' && request.method === 'GET') {
      sendJson(response, 200, faults.current);
    } else {
      request.resume();
      notFound(request, response);
    }
  };

  return (request, response) => {
    route(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else sendProblem(response, 500, 'the provider failed');
    });
  };
}

async function answerCharge(sql: SqlExecutor, body: unknown) {
  const request = parseChargeRequest(body);
  if (typeof request === 'string') return badRequest(request);
  return created({ chargeId: await charge(sql, request), ...request });
}

async function answerReceipt(sql: SqlExecutor, body: unknown) {
  const request = parseChargeRequest(body);
  if (typeof request === 'string') return badRequest(request);
  return created({ receiptId: await sendReceipt(sql, request) });
}

const created = (body: object) => ({
  status: 201,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const badRequest = (detail: string) => ({
  status: 400,
  headers: { 'content-type': 'application/problem+json' },
  body: JSON.stringify({ type: 'about:blank', status: 400, detail }),
});

/** Holds the answer back, or loses it with its connection, when everything that it tells of is committed. */
function spoilAnswer(response: ServerResponse, faults: FaultBox): void {
  const { slowMs } = faults.current;
  const drop = faults.hits('dropAfterWork');
  if (slowMs === 0 && !drop) return;
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  response.end = ((...args: unknown[]) => {
    void sleep(slowMs).then(() => {
      if (drop) response.socket?.destroy();
      else end(...args);
    });
    return response;
  }) as typeof response.end;
}

async function putFaults(faults: FaultBox, request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body: unknown;
  try {
    body = JSON.parse((await buffer(request)).toString());
  } catch {
    sendProblem(response, 400, 'the body must be JSON');
    return;
  }
  const parsed = parseFaults(body);
  if (typeof parsed === 'string') {
    sendProblem(response, 400, parsed);
    return;
  }
  faults.set(parsed);
  sendJson(response, 200, parsed);
}
