import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Server as NetServer, type Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/** Any server of `node:http` or `node:https`, whichever framework made it. */
export type HttpServer = Server;

export interface Connection {
  readonly socket: Socket;
  /** Responses that are not complete and handed to the operating system, in the order of their requests. */
  readonly open: Set<ServerResponse>;
  /** Bytes of requests that are answered; what was read beyond it belongs to a request under way. */
  answeredBytes: number;
  /** A request body that still arrives although its response is complete. */
  receiving: boolean;
  /** We have sent our FIN, or are about to. */
  leaving: boolean;
}

export interface ConnectionListener {
  onConnection(connection: Connection): void;
  /** Before the application sees the request, and before the response is added to `open`. */
  onRequest(connection: Connection, request: IncomingMessage, response: ServerResponse): void;
  /** A response is complete and with the operating system, or its connection is gone. */
  onResponseEnd(connection: Connection): void;
}

export interface Connections {
  readonly all: () => Iterable<Connection>;
  /** Connections accepted, requests begun and responses ended so far. */
  readonly happenings: () => number;
  /** Also those whose TLS handshake is not over. */
  destroyAll(): void;
  release(): void;
}

interface RequestStart {
  readonly server: NetServer;
  readonly socket: Socket;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

// Published by Node before any listener of the application, also for `checkContinue` and the like: a listener of our own
// on these events would switch off what Node does in their absence.
const REQUEST_START = 'http.server.request.start';

/** Follows the connections of a server: which have work under way, which are half-way through a request, which are idle. */
export function trackConnections(server: HttpServer, listener: ConnectionListener): Connections {
  const bySocket = new Map<Socket, Connection>();
  const rawSockets = new Set<Socket>();
  const isTls = server instanceof TlsServer;
  let happenings = 0;
  const connectionEvent = isTls ? 'secureConnection' : 'connection';

  const accept = (socket: Socket): Connection => {
    const known = bySocket.get(socket);
    if (known) return known;
    const connection: Connection = {
      socket,
      open: new Set(),
      // A TLS handshake has been read by now; on a plain socket this is 0.
      answeredBytes: socket.bytesRead,
      receiving: false,
      leaving: false,
    };
    bySocket.set(socket, connection);
    socket.once('close', () => {
      bySocket.delete(socket);
    });
    listener.onConnection(connection);
    return connection;
  };

  const acceptRaw = (socket: Socket): void => {
    happenings++;
    if (!isTls) return;
    rawSockets.add(socket);
    socket.once('close', () => {
      rawSockets.delete(socket);
    });
  };

  const begin = (message: unknown): void => {
    const { server: source, socket, request, response } = message as RequestStart;
    if (source !== server) return;
    happenings++;
    const connection = accept(socket);
    listener.onRequest(connection, request, response);
    connection.open.add(response);
    // `close` comes after `finish`, that is when the bytes are with the operating system, or when the socket is gone.
    // Nothing earlier may count as the end: a response that was only ended may still have megabytes to send.
    response.once('close', () => {
      happenings++;
      connection.open.delete(response);
      settle(connection, request);
      listener.onResponseEnd(connection);
    });
  };

  server.prependListener(connectionEvent, accept);
  server.prependListener('connection', acceptRaw);
  subscribe(REQUEST_START, begin);

  return {
    all: () => bySocket.values(),
    happenings: () => happenings,
    destroyAll: () => {
      for (const socket of bySocket.keys()) socket.destroy();
      for (const socket of rawSockets) socket.destroy();
    },
    release: () => {
      unsubscribe(REQUEST_START, begin);
      server.removeListener(connectionEvent, accept);
      server.removeListener('connection', acceptRaw);
    },
  };
}

function settle(connection: Connection, request: IncomingMessage): void {
  if (request.complete || connection.socket.destroyed) {
    if (connection.open.size === 0) connection.answeredBytes = connection.socket.bytesRead;
    return;
  }
  connection.receiving = true;
  request.once('close', () => {
    connection.receiving = false;
    if (connection.open.size === 0) connection.answeredBytes = connection.socket.bytesRead;
  });
}

/** Whether a request is under way on the connection: arriving, being worked on, or its response being sent. */
export function isBusy(connection: Connection): boolean {
  return !connection.leaving && (connection.open.size > 0 || connection.receiving || hasPartialRequest(connection));
}

export function hasPartialRequest(connection: Connection): boolean {
  return connection.open.size === 0 && !connection.receiving && connection.socket.bytesRead > connection.answeredBytes;
}

/** Whether the socket has left HTTP (WebSocket, CONNECT): Node takes its parser away then. */
export function isUpgraded(connection: Connection): boolean {
  return (connection.socket as { parser?: unknown }).parser === null;
}

/**
 * Closes the listener and nothing else. `http.Server.close()` would also destroy the sockets that are idle at this
 * instant, and with them the requests on their way, and cut responses that were ended but not sent yet.
 *
 * Closing a listener resets the connections that wait to be accepted. Node accepts one in each turn of its loop, so it is
 * done behind a turn in which there was none to accept, nor a response that makes its client connect anew. Where no
 * such turn comes, it is done when `mayWait` says so.
 */
export async function closeListener(
  server: HttpServer,
  connections: Connections,
  mayWait: () => boolean,
): Promise<void> {
  let before: number;
  await turn();
  do {
    before = connections.happenings();
    await turn();
  } while (connections.happenings() > before && mayWait());
  NetServer.prototype.close.call(server);
}

function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
