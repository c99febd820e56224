import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Socket } from 'node:net';
import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { type Random } from '../ports/random.js';
import { farewell } from './farewell.js';
import {
  closeListener,
  hasPartialRequest,
  isBusy,
  isUpgraded,
  trackConnections,
  turn,
  type Connection,
  type HttpServer,
} from './connections.js';
import { probeOf } from './health.js';
import { createHttpActivity } from './http-activity.js';
import { speaksHttp2, trackSessions, type Http2Sessions } from './http2-sessions.js';
import { createLateness, interceptRequests } from './late-requests.js';
import { closeShare } from './close-share.js';
import { type Goodbyes } from './goodbyes.js';
import { tellLongLived } from './long-lived.js';
import { holdNewcomers } from './newcomers.js';
import { lastWords, requestsAtDeadline } from './last-words.js';
import { accountFor } from './pipelining.js';
import { type HttpDrainReport } from './report.js';
import { type StepContext, type StepResult } from './step.js';

export interface HttpDrainOptions {
  readonly name: string;
  readonly server: HttpServer;
  readonly clock: Clock;
  /** The line must have been silent this long before we close it from our side; more than two round trips. */
  readonly quietMs: number;
  /** Reading goes on for this long after our FIN. */
  readonly lingerMs: number;
  readonly goodbyes: Goodbyes;
  readonly random: Random;
  readonly connectionClose: ConnectionClose;
  readonly lateRequests: LateRequests;
}

/** How many of the responses in the lame duck say `Connection: close`: all, or a share that grows from none to all. */
export type ConnectionClose = 'all' | 'ramp';

/** What becomes of requests that begin after the lame duck: served as before, or answered 503 with `Retry-After`. */
export type LateRequests = 'serve' | 'refuse';

export interface HttpDrain {
  /**
   * From now on responses say `Connection: close` and long-lived connections are told to go elsewhere; requests are served
   * as before. For `lameDuckMs` the share of such responses may still grow.
   */
  begin(lameDuckMs?: number): void;
  /** Waits until the line is quiet or the step's deadline comes, then closes the listener and all connections. */
  finish(context: StepContext): Promise<StepResult>;
  report(): HttpDrainReport;
  traffic(): HttpTraffic;
  /** Whether a socket is one of this server's connections. */
  serves(socket: Socket): boolean;
}

/** What a server has open at this moment. */
export interface HttpTraffic {
  readonly server: string;
  readonly connections: number;
  /** Responses that are not complete and sent. */
  readonly requests: number;
}

const POLL_TURNS = 3;
/** How often the line is looked at: bytes that arrive raise no event of their own. */
const LOOK_EVERY_MS = 25;
/** For clients that never leave: so long before the deadline the listener begins to close; half of it is for answers. */
const LAST_ANSWERS_MS = 2_000;
const LAST_ANSWERS_SHARE = 0.4;
const REQUEST_TIMEOUT = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/**
 * Drains any `http.Server` without losing a request (R-SHUT-HTTP-1). HTTP/1.1 has no safe moment for a server to close an
 * idle connection, since a request may be on its way. So clients are told to leave, by `Connection: close` on the
 * responses they get anyway, and from our side nothing is closed before the line has been quiet.
 */
export function createHttpDrain(options: HttpDrainOptions): HttpDrain {
  const { name, server, clock, quietMs, lingerMs } = options;
  const counts = { requests: 0, refused: 0, cut: 0, timedOut: 0, lateAfterFin: 0 };
  const marked = new WeakSet<ServerResponse>();
  const farewells = new Set<Promise<void>>();
  const activity = createHttpActivity(clock);
  const lateness = createLateness();
  const share = closeShare(options);
  let draining = false;

  const connections = trackConnections(server, {
    onConnection: (connection) => {
      activity.accepted(connection);
      if (draining) prepare(connection);
    },
    onRequest: (connection, request, response) => {
      const probe = probeOf(request.url) !== undefined;
      activity.asked(connection, probe);
      if (!draining) return;
      // A probe is answered to the end: it asks whether we stop.
      if (!probe && lateness.judge(connection, request)) counts.refused++;
      else counts.requests++;
      sayClose(connection, request, response);
    },
    onResponseEnd: (connection) => {
      // The client may be sending its next request by now, unless it was told to leave.
      if (!connection.leaving && !connection.socket.destroyed) activity.answered(connection);
    },
  });

  const sessions: Http2Sessions | undefined = speaksHttp2(server)
    ? trackSessions(server, clock, {
        onStream: () => {
          activity.note();
          if (draining) counts.requests++;
        },
      })
    : undefined;

  const streams = () => [...(sessions?.streams() ?? [])];

  /** Only the last response of a pipeline may say it: what is asked behind such a response is not answered. */
  const sayClose = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    for (const earlier of connection.open) {
      if (marked.has(earlier) && !earlier.headersSent) earlier.removeHeader('Connection');
    }
    const mayBeFollowed = accountFor(connection, request);
    if (!mayBeFollowed && share.says()) mark(response);
  };

  const markLast = (connection: Connection): void => {
    const last = [...connection.open].at(-1);
    if (last && share.says()) mark(last);
  };

  const mark = (response: ServerResponse): void => {
    if (response.headersSent) return;
    response.setHeader('Connection', 'close');
    marked.add(response);
  };

  const leave = (connection: Connection, options: { lastWords?: string; onLateBytes?: () => void } = {}): void => {
    if (connection.leaving) return;
    connection.leaving = true;
    const gone = farewell(clock, connection.socket, { lingerMs, ...options });
    farewells.add(gone);
    void gone.then(() => farewells.delete(gone));
  };

  const prepare = (connection: Connection): void => {
    // Node's keep-alive timer closes at an instant of its own, and what is on the wire then is lost.
    if (connection.open.size === 0) connection.socket.setTimeout(0);
    // Node calls this after a response that said `close`. Its own version destroys at once, which resets a client that
    // is still sending the rest of a body nobody wanted, before it has read the response.
    connection.socket.destroySoon = () => {
      leave(connection);
    };
  };

  /**
   * A client that never leaves connects anew as soon as it is answered, and a listener that closes resets what waits to
   * be accepted. So for a moment what newcomers ask is not read: each client is on a connection that has been accepted
   * and waits there, the line falls silent, the listener closes, and then they are answered.
   */
  const closeBehindNewcomers = async (context: StepContext): Promise<void> => {
    const newcomers = holdNewcomers(server, () => {
      connections.noteArrival();
      activity.note();
    });
    const untilMs = context.remainingMs() / 2;
    await until(context.deadline, () => isSilent() || context.remainingMs() <= untilMs);
    await closeListener(server, connections, () => context.remainingMs() > untilMs / 2);
    newcomers.admit();
    activity.note();
  };

  const isSilent = (): boolean => activity.silentMs() >= quietMs && !connections.shakesHands();

  const isQuiet = (): boolean => {
    return isSilent() && streams().length === 0 && ![...connections.all()].some(isBusy);
  };

  const tell = (): void => {
    options.goodbyes.sayAll();
    tellLongLived({ connections: connections.all(), streams: streams(), goodbyes: options.goodbyes, clock });
  };

  /** Where the loop was blocked, what arrived meanwhile has not been read yet, and only the clock says that it was quiet. */
  const holdsBehindPoll = async (condition: () => boolean): Promise<boolean> => {
    for (let turns = 0; turns < POLL_TURNS; turns++) await turn();
    return condition();
  };

  const until = async (deadline: AbortSignal, condition: () => boolean): Promise<void> => {
    while (!deadline.aborted) {
      tell();
      sessions?.closeSilent(quietMs);
      if (condition() && (await holdsBehindPoll(condition))) return;
      await pause(clock, LOOK_EVERY_MS, deadline);
    }
  };

  const inFlight = (): number =>
    [...connections.all()].reduce((sum, connection) => sum + connection.open.size, streams().length);

  const force = (): void => {
    for (const connection of connections.all()) {
      if (!isBusy(connection)) continue;
      if (hasPartialRequest(connection) && !isUpgraded(connection)) {
        counts.timedOut++;
        leave(connection, { lastWords: REQUEST_TIMEOUT });
      } else if (connection.webSocket?.toldMs !== undefined) {
        leave(connection);
      } else {
        counts.cut += Math.max(1, connection.open.size);
        connection.leaving = true;
        connection.socket.destroy();
      }
    }
    counts.cut += streams().length;
    sessions?.force();
  };

  const begin = (lameDuckMs = 0): void => {
    if (draining) return;
    draining = true;
    share.begin(lameDuckMs);
    if ('keepAliveTimeout' in server) server.keepAliveTimeout = 0;
    for (const connection of connections.all()) {
      prepare(connection);
      for (const { req } of connection.open) accountFor(connection, req);
      markLast(connection);
    }
    sessions?.begin();
    tell();
  };

  const refuseLate = (): (() => void) => {
    lateness.begin(connections.all());
    return interceptRequests(server, clock, lateness.isLate);
  };

  const onLateBytes = (): void => {
    counts.lateAfterFin++;
  };

  const report = (): HttpDrainReport => ({ server: name, ...counts });

  return {
    begin,
    report,
    traffic: () => {
      return {
        server: name,
        connections: [...connections.all()].length + (sessions?.count() ?? 0),
        requests: inFlight(),
      };
    },
    serves: (socket) => connections.has(socket),
    finish: async (context) => {
      const { deadline, remainingMs } = context;
      begin();
      const overran = requestsAtDeadline(deadline, inFlight);
      share.end();
      for (const connection of connections.all()) markLast(connection);
      const admitLate = options.lateRequests === 'refuse' ? refuseLate() : undefined;
      const lastAnswersMs = Math.min(LAST_ANSWERS_MS, remainingMs() * LAST_ANSWERS_SHARE);
      await until(deadline, () => isQuiet() || remainingMs() <= lastAnswersMs);
      if (isQuiet()) await closeListener(server, connections, () => remainingMs() > lastAnswersMs);
      else await closeBehindNewcomers(context);
      await until(deadline, isQuiet);
      if (deadline.aborted) await lastWords({ clock, inFlight, lastsMs: context.settleMs - lingerMs });
      force();
      for (const connection of connections.all()) leave(connection, { onLateBytes });
      await Promise.all([...farewells, sessions?.leave(lingerMs)]);
      admitLate?.();
      connections.destroyAll();
      connections.release();
      sessions?.release();
      // All sockets are gone: now it only stops the timer that Node runs for the server's request time-outs.
      server.close();
      emit('lifecycle.http-drained', report());
      return { forced: overran() || counts.cut > 0 };
    },
  };
}
