import { type IncomingMessage, type ServerResponse } from 'node:http';
import { probeOf, type Health } from './health.js';

/** Answers GET and HEAD of the two health paths. False, and nothing done, for any other request. */
export function answerProbe(health: Health, request: IncomingMessage, response: ServerResponse): boolean {
  const kind = probeOf(request.url);
  if (kind === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false;
  void health.probe(kind).then((answer) => {
    if (response.headersSent || response.destroyed) return;
    const body = JSON.stringify(answer.body);
    response.writeHead(answer.status, {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'content-length': Buffer.byteLength(body),
    });
    response.end(request.method === 'HEAD' ? undefined : body);
  });
  return true;
}
