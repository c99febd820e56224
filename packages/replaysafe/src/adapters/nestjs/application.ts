import { Server as NetServer } from 'node:net';
import type { HttpServer, Lifecycle, ServerOptions } from '../../lifecycle/index.js';
import { pause } from '../../ports/clock.js';
import { guardHooks, type Hooks } from './hooks.js';
import type { NestHttpAdapter, NestModule } from './types.js';

export interface ApplicationOptions {
  readonly lifecycle: Lifecycle;
  readonly modules: ReadonlyMap<string, NestModule>;
  readonly adapter: NestHttpAdapter | undefined;
  readonly server: ServerOptions | false;
  readonly hookMs: number;
  /** Takes our signal handlers away; undefined when there are none of ours. */
  readonly uninstall: (() => void) | undefined;
}

/** What Nest calls on a provider of either module at the ends of the row. */
interface EndHooks {
  onModuleDestroy(): Promise<void>;
  onApplicationShutdown(signal?: string): Promise<void>;
}

/** The module whose hooks run behind all others when the application starts. */
export interface NearestHooks extends EndHooks {
  onApplicationBootstrap(): void;
}

/** The module whose hooks run before all others when the application starts. */
export interface FarthestHooks extends EndHooks {
  onModuleInit(): void;
}

/** For a signal handler of Nest to be held until ours has ended the process: its last log lines are given 1 s. */
const EXIT_MS = 2_000;

/**
 * Joins the stop of a Nest application and that of the lifecycle: whichever begins first begins the other, and Nest's hooks
 * run as one step of ours, when requests, work, consumers are done and before the pools close (R-SHUT-DB-X1).
 */
export function joinApplication(options: ApplicationOptions): { nearest: NearestHooks; farthest: FarthestHooks } {
  const { lifecycle, modules, adapter, server, hookMs, uninstall } = options;
  const { clock, logger } = lifecycle;
  const turnOfNest = new AbortController();
  const endOfNest = new AbortController();
  let closedByNest = false;
  let hooks: Hooks | undefined;

  /** What fails or hangs becomes a resource of its own: it is in the report by name and decides the exit code. */
  const blame = (name: string, outcome: () => Promise<void>): void => {
    for (let count = 1; count < 100; count++) {
      try {
        lifecycle.producer({ name: count === 1 ? `nest: ${name}` : `nest: ${name} (${count})`, stop: outcome });
        return;
      } catch {
        // Two providers of one class: the next name.
      }
    }
  };

  const guard = async (name: string, call: () => unknown): Promise<void> => {
    const running = (async () => {
      await call();
    })();
    const waiting = new AbortController();
    try {
      const ended = await Promise.race([
        running.then(() => true),
        pause(clock, hookMs, waiting.signal).then(() => false),
      ]);
      if (ended) return;
      logger.error({ hook: name, hookMs }, 'a hook of Nest does not end; the next ones go on without it');
      blame(name, () => running);
    } catch (error) {
      blame(name, () => Promise.reject(error instanceof Error ? error : new Error(String(error))));
    } finally {
      waiting.abort();
    }
  };

  /** Without `enableShutdownHooks()` nobody else calls the hooks. */
  const driveHooks = async (): Promise<void> => {
    const signal = lifecycle.reason?.startsWith('SIG') ? lifecycle.reason : undefined;
    await hooks?.run('onModuleDestroy', signal);
    await hooks?.run('beforeApplicationShutdown', signal);
    if (adapter !== undefined) await guard('httpAdapter.close', () => adapter.close());
    await hooks?.run('onApplicationShutdown', signal);
  };

  lifecycle.producer({
    name: 'nest',
    stop: async (deadline) => {
      turnOfNest.abort();
      // A signal is told to Nest in the same turn as to us, but it comes here some microtasks later.
      await nextTurn();
      await Promise.race([closedByNest ? aborted(endOfNest.signal) : driveHooks(), aborted(deadline)]);
    },
  });

  // Nest 10 stops from far to near, later ones from near to far: the first of the two to be called is before all others
  // either way, and the second behind them.
  const ended = new Set<EndHooks>();
  const endHooks = (): EndHooks => ({
    onModuleDestroy: async () => {
      closedByNest = true;
      void lifecycle.stop('app.close() was called');
      await aborted(turnOfNest.signal);
    },
    async onApplicationShutdown(signal) {
      ended.add(this);
      if (ended.size < 2) return;
      endOfNest.abort();
      await lifecycle.stop();
      if (uninstall === undefined) return;
      // From here Nest would send itself the signal again or leave with 0; the exit code is ours to say.
      if (signal === 'SIGTERM' || signal === 'SIGINT') await pause(clock, EXIT_MS);
      await nextTurn();
      uninstall();
    },
  });
  const nearest: NearestHooks = {
    ...endHooks(),
    onApplicationBootstrap: () => {
      lifecycle.started();
    },
  };
  const farthest: FarthestHooks = {
    ...endHooks(),
    onModuleInit: () => {
      hooks = guardHooks(modules.values(), new Set<unknown>([nearest, farthest]), guard);
      const httpServer = adapter?.getHttpServer();
      if (server !== false && isServer(httpServer)) lifecycle.server(httpServer, server);
    },
  };
  return { nearest, farthest };
}

/** An adapter may have none, e.g. that of a microservice. */
function isServer(given: unknown): given is HttpServer {
  return given instanceof NetServer;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
  });
}
