import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Http2SecureServer, type Http2Server } from 'node:http2';
import { Server as NetServer, type Socket } from 'node:net';
import { Server as TlsServer, TLSSocket } from 'node:tls';
import { speaksHttp2 } from './http2-sessions.js';
import { followUpgrades } from './upgrades.js';

/** Any server of `node:http`, `node:https` or `node:http2`, whichever framework made it. */
export type HttpServer = Server | Http2Server | Http2SecureServer;

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
  /** Set when a request on it asked for a WebSocket. */
  webSocket: WebSocketState | undefined;
}

export interface WebSocketState {
  /** More than this, and the handshake has been answered. */
  readonly writtenBefore: number;
  /** When our close frame was sent, on the monotonic clock. */
  toldMs: number | undefined;
  /** It had its time to answer the close frame and holds nothing up any more. */
  dismissed: boolean;
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
  /** A connection was accepted that is not seen by anybody yet. */
  noteArrival(): void;
  has(socket: Socket): boolean;
  /** Whether a TLS handshake is under way; a connection on which nothing has been sent yet has not begun one. */
  readonly shakesHands: () => boolean;
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
  const insecure = new Set<Socket>();
  const netServer: NetServer = server;
  const isTls = netServer instanceof TlsServer;
  // Sockets below those that HTTP/1.1 is spoken on, if any is.
  const hasRawSockets = isTls || speaksHttp2(server);
  let happenings = 0;
  const connectionEvent = isTls ? 'secureConnection' : 'connection';

  const know = (socket: Socket, answeredBytes: number): Connection => {
    const known = bySocket.get(socket);
    if (known) return known;
    const connection: Connection = {
      socket,
      open: new Set(),
      answeredBytes,
      receiving: false,
      leaving: false,
      webSocket: undefined,
    };
    bySocket.set(socket, connection);
    socket.once('close', () => {
      bySocket.delete(socket);
    });
    listener.onConnection(connection);
    return connection;
  };

  const accept = (socket: Socket): void => {
    // A TLS handshake has been read by now. Of a plain socket, what has been read is its first request.
    insecure.delete(rawSocketOf(socket));
    if (!(socket instanceof TLSSocket)) know(socket, 0);
    else if (socket.alpnProtocol !== 'h2') know(socket, socket.bytesRead);
  };

  const acceptRaw = (socket: Socket): void => {
    happenings++;
    if (!hasRawSockets) return;
    rawSockets.add(socket);
    if (isTls) insecure.add(socket);
    socket.once('close', () => {
      rawSockets.delete(socket);
      insecure.delete(socket);
    });
  };

  const begin = (message: unknown): void => {
    const { server: source, socket, request, response } = message as RequestStart;
    if (source !== server) return;
    happenings++;
    const connection = know(socket, socket.bytesRead);
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

  const upgrade = (request: IncomingMessage, socket: Socket): void => {
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') return;
    know(socket, 0).webSocket = { writtenBefore: socket.bytesWritten, toldMs: undefined, dismissed: false };
  };

  // On a plain HTTP/2 server nobody speaks HTTP/1.1.
  if (isTls || !hasRawSockets) netServer.prependListener(connectionEvent, accept);
  netServer.prependListener('connection', acceptRaw);
  const unfollow = followUpgrades(netServer, upgrade);
  subscribe(REQUEST_START, begin);

  return {
    all: () => bySocket.values(),
    happenings: () => happenings,
    noteArrival: () => {
      happenings++;
    },
    shakesHands: () => [...insecure].some(({ bytesRead }) => bytesRead > 0),
    has: (socket) => bySocket.has(socket),
    destroyAll: () => {
      for (const socket of bySocket.keys()) socket.destroy();
      for (const socket of rawSockets) socket.destroy();
    },
    release: () => {
      unsubscribe(REQUEST_START, begin);
      unfollow();
      netServer.removeListener(connectionEvent, accept);
      netServer.removeListener('connection', acceptRaw);
    },
  };
}

/** The socket below a TLS socket. */
function rawSocketOf(socket: Socket): Socket {
  return (socket as { _parent?: Socket })._parent ?? socket;
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
  if (connection.leaving || connection.webSocket?.dismissed === true) return false;
  return connection.open.size > 0 || connection.receiving || hasPartialRequest(connection);
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

/** The loop has polled for input in between. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
