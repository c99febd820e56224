import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { emit } from '../events.js';
import { pause, type Clock } from '../ports/clock.js';
import { farewell } from './farewell.js';
import {
  closeListener,
  hasPartialRequest,
  isBusy,
  isUpgraded,
  trackConnections,
  type Connection,
  type HttpServer,
} from './connections.js';
import { probeOf } from './health.js';
import { createHttpActivity } from './http-activity.js';
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
}

export interface HttpDrain {
  /** From now on every response says `Connection: close`; requests are served as before. */
  begin(): void;
  /** Waits until the line is quiet or the step's deadline comes, then closes the listener and all connections. */
  finish(context: StepContext): Promise<StepResult>;
  report(): HttpDrainReport;
  traffic(): HttpTraffic;
}

/** What a server has open at this moment. */
export interface HttpTraffic {
  readonly server: string;
  readonly connections: number;
  /** Responses that are not complete and sent. */
  readonly requests: number;
}

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
  const counts = { requests: 0, cut: 0, timedOut: 0, lateAfterFin: 0 };
  const marked = new WeakSet<ServerResponse>();
  const farewells = new Set<Promise<void>>();
  const held = new Set<Socket>();
  const activity = createHttpActivity(clock);
  let draining = false;
  let holding = false;

  const connections = trackConnections(server, {
    onConnection: (connection) => {
      activity.accepted(connection);
      if (draining) prepare(connection);
      if (holding) hold(connection.socket);
    },
    onRequest: (connection, request, response) => {
      activity.asked(connection, probeOf(request.url) !== undefined);
      if (!draining) return;
      counts.requests++;
      sayClose(connection, request, response);
    },
    onResponseEnd: (connection) => {
      // The client may be sending its next request by now, unless it was told to leave.
      if (!connection.leaving && !connection.socket.destroyed) activity.answered(connection);
    },
  });

  /** Only the last response of a pipeline may say it: what is asked behind such a response is not answered. */
  const sayClose = (connection: Connection, request: IncomingMessage, response: ServerResponse): void => {
    for (const earlier of connection.open) {
      if (marked.has(earlier) && !earlier.headersSent) earlier.removeHeader('Connection');
    }
    const mayBeFollowed = accountFor(connection, request);
    if (!mayBeFollowed) mark(response);
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

  const hold = (socket: Socket): void => {
    // What a TLS socket has decrypted already would not come out again when it is resumed.
    if (socket instanceof TLSSocket) return;
    held.add(socket);
    // Behind Node's own listener for the connection, which is what makes a pause stop the reading.
    queueMicrotask(() => {
      if (holding) socket.pause();
    });
  };

  /**
   * A client that never leaves connects anew as soon as it is answered, and a listener that closes resets what waits to
   * be accepted. So for a moment what newcomers ask is not read: each client is on a connection that has been accepted
   * and waits there, the line falls silent, the listener closes, and then they are answered.
   */
  const closeBehindNewcomers = async (context: StepContext): Promise<void> => {
    holding = true;
    const untilMs = context.remainingMs() / 2;
    await until(context.deadline, () => isSilent() || context.remainingMs() <= untilMs);
    await closeListener(server, connections, () => context.remainingMs() > untilMs / 2);
    holding = false;
    for (const socket of held) socket.resume();
    held.clear();
    activity.note();
  };

  const isSilent = (): boolean => activity.silentMs() >= quietMs;

  const isQuiet = (): boolean => {
    return isSilent() && ![...connections.all()].some(isBusy);
  };

  const until = async (deadline: AbortSignal, condition: () => boolean): Promise<void> => {
    while (!deadline.aborted && !condition()) await pause(clock, LOOK_EVERY_MS, deadline);
  };

  const force = (): void => {
    for (const connection of connections.all()) {
      if (!isBusy(connection)) continue;
      if (hasPartialRequest(connection) && !isUpgraded(connection)) {
        counts.timedOut++;
        leave(connection, { lastWords: REQUEST_TIMEOUT });
      } else {
        counts.cut += Math.max(1, connection.open.size);
        connection.leaving = true;
        connection.socket.destroy();
      }
    }
  };

  const begin = (): void => {
    if (draining) return;
    draining = true;
    server.keepAliveTimeout = 0;
    for (const connection of connections.all()) {
      prepare(connection);
      const open = [...connection.open];
      for (const { req } of open) accountFor(connection, req);
      const last = open.at(-1);
      if (last) mark(last);
    }
  };

  const onLateBytes = (): void => {
    counts.lateAfterFin++;
  };

  const report = (): HttpDrainReport => ({ server: name, ...counts });

  return {
    begin,
    report,
    traffic: () => {
      const open = [...connections.all()];
      return {
        server: name,
        connections: open.length,
        requests: open.reduce((sum, connection) => sum + connection.open.size, 0),
      };
    },
    finish: async (context) => {
      const { deadline, remainingMs } = context;
      begin();
      const lastAnswersMs = Math.min(LAST_ANSWERS_MS, remainingMs() * LAST_ANSWERS_SHARE);
      await until(deadline, () => isQuiet() || remainingMs() <= lastAnswersMs);
      if (isQuiet()) await closeListener(server, connections, () => remainingMs() > lastAnswersMs);
      else await closeBehindNewcomers(context);
      await until(deadline, isQuiet);
      force();
      for (const connection of connections.all()) leave(connection, { onLateBytes });
      await Promise.all(farewells);
      connections.destroyAll();
      connections.release();
      // All sockets are gone: now it only stops the timer that Node runs for the server's request time-outs.
      server.close();
      emit('lifecycle.http-drained', report());
      return { forced: counts.cut > 0 };
    },
  };
}
