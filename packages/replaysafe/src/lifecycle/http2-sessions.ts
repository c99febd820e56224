import { constants, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import { type Server as NetServer } from 'node:net';
import { type Clock } from '../ports/clock.js';

/** The HTTP/2 sessions of a server and the streams that are open on them. */
export interface Http2Sessions {
  /** Tells every client, by GOAWAY, to open its next stream elsewhere; what it has sent by now is served. */
  begin(): void;
  /** Says the last word to sessions that have opened no stream for so long: later streams are not processed. */
  closeSilent(quietMs: number): void;
  readonly streams: () => Iterable<ServerHttp2Stream>;
  readonly count: () => number;
  /** Destroys what is left. */
  force(): void;
  /** Closes all sessions and waits until their clients are gone, but no longer than that. */
  leave(lingerMs: number): Promise<void>;
  release(): void;
}

export interface SessionListener {
  /** Before the application sees the stream. */
  onStream(stream: ServerHttp2Stream): void;
}

interface Session {
  readonly session: ServerHttp2Session;
  readonly streams: Set<ServerHttp2Stream>;
  told: boolean;
  heardMs: number;
}

/** The highest stream there can be: nothing on its way is given up. */
const LAST_STREAM = 2 ** 31 - 1;

/** Node's HTTP/2 servers, plain and secure, which no class of its own tells apart from other servers. */
export function speaksHttp2(server: NetServer): boolean {
  return 'updateSettings' in server;
}

/**
 * Follows the sessions of an HTTP/2 server. Unlike HTTP/1.1 the protocol has a safe close: a first GOAWAY that takes
 * nothing back, then, when the client must have read it, a second one that names the last stream which was processed.
 * Node's own `server.close()` sends neither before version 24.
 */
export function trackSessions(server: NetServer, clock: Clock, listener: SessionListener): Http2Sessions {
  const sessions = new Set<Session>();
  let draining = false;
  let allGone: () => void = () => undefined;

  const tell = (entry: Session): void => {
    if (entry.told || entry.session.closed || entry.session.destroyed) return;
    entry.told = true;
    entry.heardMs = clock.monotonicMs();
    entry.session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM);
  };

  const onSession = (session: ServerHttp2Session): void => {
    const entry: Session = { session, streams: new Set(), told: false, heardMs: clock.monotonicMs() };
    sessions.add(entry);
    session.prependListener('stream', (stream) => {
      entry.heardMs = clock.monotonicMs();
      entry.streams.add(stream);
      stream.once('close', () => entry.streams.delete(stream));
      listener.onStream(stream);
      // A session that began during the drain is good for one request; told before, its client could not send that.
      if (draining) tell(entry);
    });
    session.once('close', () => {
      sessions.delete(entry);
      if (sessions.size === 0) allGone();
    });
  };

  server.prependListener('session', onSession);

  return {
    begin: () => {
      draining = true;
      for (const entry of sessions) tell(entry);
    },
    closeSilent: (quietMs) => {
      const now = clock.monotonicMs();
      for (const { session, heardMs } of sessions) {
        if (!session.closed && !session.destroyed && now - heardMs >= quietMs) session.close();
      }
    },
    streams: function* () {
      for (const { streams } of sessions) yield* streams;
    },
    count: () => sessions.size,
    force: () => {
      for (const { session, streams } of sessions) if (streams.size > 0) session.destroy();
    },
    leave: (lingerMs) => {
      if (sessions.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        const timer = clock.setTimer(lingerMs, resolve);
        allGone = () => {
          timer.cancel();
          resolve();
        };
        for (const { session } of sessions) if (!session.closed && !session.destroyed) session.close();
      });
    },
    release: () => {
      server.removeListener('session', onSession);
    },
  };
}
