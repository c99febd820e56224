import { type IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type Connection } from './connections.js';

/** The shortest request there is, less some room for clients that write their headers more tersely than we count. */
const SHORTEST_FOLLOWER_BYTES = 18;

/**
 * Takes the bytes of a request as accounted for.
 *
 * @returns whether more bytes have been read already, so that another request is to be expected: a handler may answer
 *   before the parser has told of it. A guess by size, since the parser does not say where a request ends. On TLS, where
 *   the bytes read are not those of the requests, and for bodies of unknown length the answer is no.
 */
export function accountFor(connection: Connection, request: IncomingMessage): boolean {
  const size = connection.socket instanceof TLSSocket ? undefined : sizeOf(request);
  if (size === undefined) {
    connection.answeredBytes = connection.socket.bytesRead;
    return false;
  }
  connection.answeredBytes += size;
  return connection.socket.bytesRead - connection.answeredBytes >= SHORTEST_FOLLOWER_BYTES;
}

function sizeOf(request: IncomingMessage): number | undefined {
  if (request.headers['transfer-encoding'] !== undefined) return undefined;
  const body = Number(request.headers['content-length'] ?? 0);
  const line = (request.method?.length ?? 0) + (request.url?.length ?? 0) + ' '.length * 2 + 'HTTP/1.1\r\n'.length;
  const headers = request.rawHeaders.reduce((sum, part) => sum + part.length + ': '.length, 0);
  return line + headers + '\r\n'.length + body;
}
