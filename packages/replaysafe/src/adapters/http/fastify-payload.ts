import type { FastifyReply } from 'fastify';
import type { HttpAnswer } from '../../idempotency/index.js';

/** What Fastify is about to send, as the engine sees it. Streams cannot be looked into without being used up. */
export function asAnswer(reply: FastifyReply, payload: unknown): HttpAnswer {
  const headers = textual(reply.getHeaders());
  if (payload === undefined || payload === null) return { status: reply.statusCode, headers, body: null };
  if (typeof payload === 'string' || payload instanceof Uint8Array) {
    return { status: reply.statusCode, headers, body: payload };
  }
  if (payload instanceof Response) {
    const bodyUnavailable = payload.body !== null;
    return {
      status: payload.status,
      headers: { ...headers, ...fetched(payload.headers) },
      body: null,
      bodyUnavailable,
    };
  }
  return { status: reply.statusCode, headers, body: null, bodyUnavailable: true };
}

/** A stream that fails while nobody listens ends the process; Fastify, which reads it later, hears of the failure still. */
export function keepQuiet(payload: unknown): void {
  if (isNodeStream(payload)) payload.on('error', () => undefined);
}

/** Frees what is not going to be sent. */
export function dropPayload(payload: unknown): void {
  if (isNodeStream(payload)) payload.destroy?.();
  const body = payload instanceof Response ? payload.body : payload;
  if (body instanceof ReadableStream) body.cancel().catch(() => undefined);
}

interface NodeStream {
  on(event: 'error', listener: () => void): unknown;
  destroy?(): unknown;
}

function isNodeStream(payload: unknown): payload is NodeStream {
  return typeof payload === 'object' && payload !== null && 'pipe' in payload && 'on' in payload;
}

function textual(headers: ReturnType<FastifyReply['getHeaders']>): Record<string, string | readonly string[]> {
  const result: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name] = Array.isArray(value) ? value : String(value);
  }
  return result;
}

function fetched(headers: Headers): Record<string, string> {
  return Object.fromEntries(headers.entries());
}
