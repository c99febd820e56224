import { type ServerResponse } from 'node:http';
import { type ServerHttp2Stream } from 'node:http2';
import { type Clock } from '../ports/clock.js';
import { type Connection } from './connections.js';
import { GOING_AWAY, endEventStream, isEventStream, type Goodbyes } from './goodbyes.js';

/** A client has so long to answer our close frame; nothing it still sends would be answered. */
const CLOSE_FRAME_MS = 1_000;

/**
 * Tells clients of long-lived connections to go elsewhere, where the application has not registered a goodbye of its own:
 * streams of events are ended, WebSockets get a close frame. Each is told once; call it again for those that begin later.
 */
export function tellLongLived(options: {
  readonly connections: Iterable<Connection>;
  readonly streams: readonly ServerHttp2Stream[];
  readonly goodbyes: Goodbyes;
  readonly clock: Clock;
}): void {
  const { goodbyes, clock } = options;
  for (const connection of options.connections) {
    if (connection.leaving) continue;
    for (const response of connection.open) {
      if (!response.headersSent || response.writableEnded || goodbyes.has(response)) continue;
      if (isEventStream(sentContentType(response))) endEventStream(response);
    }
    tellWebSocket(connection, goodbyes, clock);
  }
  for (const stream of options.streams) {
    if (!stream.headersSent || stream.writableEnded || stream.destroyed || goodbyes.has(stream)) continue;
    if (isEventStream(stream.sentHeaders['content-type'])) endEventStream(stream);
  }
}

/** Headers given to `writeHead()` are in no list that Node keeps, only in the text it has sent. */
function sentContentType(response: ServerResponse): string | undefined {
  const sent = (response as { _header?: string | null })._header;
  return typeof sent === 'string' ? /^content-type:\s*([^\r]*)/im.exec(sent)?.[1] : undefined;
}

function tellWebSocket(connection: Connection, goodbyes: Goodbyes, clock: Clock): void {
  const { socket, webSocket } = connection;
  if (webSocket === undefined || goodbyes.has(socket)) return;
  if (webSocket.toldMs !== undefined) {
    if (clock.monotonicMs() - webSocket.toldMs >= CLOSE_FRAME_MS) webSocket.dismissed = true;
    return;
  }
  // Before the handshake is answered there is nobody who would understand a frame.
  if (socket.bytesWritten <= webSocket.writtenBefore || !socket.writable) return;
  webSocket.toldMs = clock.monotonicMs();
  // The client may be gone, and it is we who write: an error that nobody listens to would end the process.
  socket.on('error', () => undefined);
  socket.write(GOING_AWAY);
}
