import { type ServerResponse } from 'node:http';
import { type Http2ServerResponse, type ServerHttp2Stream } from 'node:http2';
import { type Duplex } from 'node:stream';
import { ReplaysafeError } from '../errors.js';
import { type Logger } from '../ports/logger.js';

/** A response that has no end of its own, or the socket of a connection that was upgraded (`request.socket`). */
export type LongLivedConnection = ServerResponse | Http2ServerResponse | Duplex;

/** Tells the client to go elsewhere, in whatever words the two have. What it throws is logged. */
export type Goodbye = () => void | Promise<void>;

/** Who wants to tell its long-lived client itself that the service stops. */
export interface Goodbyes {
  add(connection: LongLivedConnection, goodbye: Goodbye): void;
  has(connection: Duplex | ServerResponse): boolean;
  /** Everybody who has not said it yet does so now. */
  sayAll(): void;
}

export function createGoodbyes(logger: Logger): Goodbyes {
  const known = new WeakSet<object>();
  const unsaid = new Map<object, Goodbye>();

  const say = async (goodbye: Goodbye): Promise<void> => {
    try {
      await goodbye();
    } catch (error) {
      logger.warn({ err: error }, 'a goodbye to a long-lived connection failed');
    }
  };

  return {
    add: (connection, goodbye) => {
      const target = targetOf(connection);
      if (target === undefined || typeof goodbye !== 'function') {
        throw new ReplaysafeError('RS_OPTION_INVALID', {
          detail: 'longLived() takes a response or the socket of an upgrade (request.socket), and a function',
        });
      }
      known.add(target);
      unsaid.set(target, goodbye);
      target.once('close', () => unsaid.delete(target));
    },
    has: (connection) => known.has(connection),
    sayAll: () => {
      for (const [target, goodbye] of unsaid) {
        unsaid.delete(target);
        void say(goodbye);
      }
    },
  };
}

function targetOf(connection: LongLivedConnection): Duplex | ServerResponse | undefined {
  // Given by applications that are not written in TypeScript, too.
  const given = connection as Partial<ServerResponse & { stream: ServerHttp2Stream }> | undefined;
  if (given?.stream !== undefined) return given.stream;
  return typeof given?.once === 'function' && typeof given.write === 'function'
    ? (connection as Duplex | ServerResponse)
    : undefined;
}

interface Endable {
  write(...args: never[]): boolean;
  end(): unknown;
  destroy(): unknown;
}

/**
 * Ends a stream of events in the middle, which is how its clients learn to connect anew. The application does not know
 * and goes on writing; that must not be the error "write after end", which nobody listens to.
 */
export function endEventStream(response: Endable): void {
  try {
    response.end();
  } catch {
    // What wraps `end` in the application has failed. Its client connects anew behind a cut as well.
    response.destroy();
  }
  const done = (args: readonly unknown[]): void => {
    const callback = args.at(-1);
    if (typeof callback === 'function') queueMicrotask(callback as () => void);
  };
  response.write = (...args) => {
    done(args);
    return true;
  };
  response.end = (...args: unknown[]) => {
    done(args);
    return response;
  };
}

export function isEventStream(contentType: unknown): boolean {
  return typeof contentType === 'string' && /^\s*text\/event-stream\b/i.test(contentType);
}

/** A WebSocket close frame of the server: 1001, "going away". */
export const GOING_AWAY = Buffer.from([0x88, 0x02, 0x03, 0xe9]);
