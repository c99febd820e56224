import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Server as NetServer } from 'node:net';
import { type Clock } from '../ports/clock.js';
import { type Connection } from './connections.js';
import { intercept } from './intercept.js';

/** So much of a body that nobody wants is read, and for so long, before the answer. */
const BODY_BYTES = 1_048_576;
const BODY_MS = 2_000;
const RETRY_AFTER_S = '1';

/** Which requests are late: those of which no byte had been read when the refusal began. */
export interface Lateness {
  begin(connections: Iterable<Connection>): void;
  /** Before the request's bytes are accounted for. */
  judge(connection: Connection, request: IncomingMessage): boolean;
  readonly isLate: (request: IncomingMessage) => boolean;
}

export function createLateness(): Lateness {
  const late = new WeakSet<IncomingMessage>();
  const readBefore = new WeakMap<Connection, number>();
  let refusing = false;
  return {
    begin: (connections) => {
      refusing = true;
      for (const connection of connections) readBefore.set(connection, connection.socket.bytesRead);
    },
    judge: (connection, request) => {
      if (!refusing || connection.answeredBytes < (readBefore.get(connection) ?? 0)) return false;
      late.add(request);
      return true;
    },
    isLate: (request) => late.has(request),
  };
}

/**
 * Keeps requests from the application that are to be refused.
 *
 * @returns puts everything back
 */
export function interceptRequests(
  server: NetServer,
  clock: Clock,
  refuses: (request: IncomingMessage) => boolean,
): () => void {
  const putBacks = ['request', 'checkContinue', 'checkExpectation'].map((event) =>
    intercept(server, event, (passOn, request: IncomingMessage, response: ServerResponse) => {
      if (!refuses(request)) passOn(request, response);
      // One that waits for a go-ahead has not sent its body, and will not.
      else if (event === 'checkContinue') refuse(response);
      else refuseBehindBody(clock, request, response);
    }),
  );
  return () => {
    for (const putBack of putBacks) putBack();
  };
}

function refuse(response: ServerResponse): void {
  response.writeHead(503, { 'retry-after': RETRY_AFTER_S, connection: 'close', 'content-length': '0' }).end();
}

/** An answer before the end of the body is often not read: the client is still sending, and then meets a reset. */
function refuseBehindBody(clock: Clock, request: IncomingMessage, response: ServerResponse): void {
  let bytes = 0;
  let answered = false;
  const answer = (): void => {
    if (answered) return;
    answered = true;
    timer.cancel();
    if (!response.headersSent && !response.destroyed) refuse(response);
  };
  const timer = clock.setTimer(BODY_MS, answer, { keepAlive: false });
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_BYTES) answer();
  });
  request.once('close', answer);
  request.once('end', answer);
}
