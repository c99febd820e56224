import { type IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type Connection } from './connections.js';

/** The shortest request there is, less some room for clients that write their headers more tersely than we count. */
const SHORTEST_FOLLOWER_BYTES = 18;

/**
 * Whether bytes behind this request have been read already, so that another one is to be expected: a handler may answer
 * before the parser has told of it. A guess by size, since the parser does not say where a request ends; on TLS, where
 * the bytes read are not those of the requests, and for bodies of unknown length the answer is no.
 *
 * Also takes the request's bytes as accounted for.
 */
export function mayBeFollowed(connection: Connection, request: IncomingMessage): boolean {
  const size = connection.socket instanceof TLSSocket ? undefined : sizeOf(request);
  if (size === undefined) return false;
  const beyond = connection.socket.bytesRead - connection.answeredBytes - size;
  connection.answeredBytes += size;
  return beyond >= SHORTEST_FOLLOWER_BYTES;
}

function sizeOf(request: IncomingMessage): number | undefined {
  if (request.headers['transfer-encoding'] !== undefined) return undefined;
  const body = Number(request.headers['content-length'] ?? 0);
  const line = (request.method?.length ?? 0) + (request.url?.length ?? 0) + ' '.length * 2 + 'HTTP/1.1\r\n'.length;
  const headers = request.rawHeaders.reduce((sum, part) => sum + part.length + ': '.length, 0);
  return line + headers + '\r\n'.length + body;
}
