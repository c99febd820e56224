import { type IncomingMessage, type ServerResponse } from 'node:http';
import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { parseOptions } from '../options.js';
import { type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type PeriodicJob, type Resource, type StopSignals } from '../ports/stop.js';
import { type Budget, crashBudget, planBudget } from './budget.js';
import { type HttpServer } from './connections.js';
import {
  JOB_OPTIONS,
  LIFECYCLE_OPTIONS,
  SERVER_OPTIONS,
  WORKER_OPTIONS,
  type LifecycleOptions,
} from './lifecycle-options.js';
import { createHealth, probeOf, type ProbeAnswer, type ProbeKind, type ReadinessCheck } from './health.js';
import { createHttpDrain, type HttpDrain, type HttpTraffic } from './http-drain.js';
import { guardedLogger } from './guarded-logger.js';
import { createRegistry } from './registry.js';
import { exitCodeOf, type ShutdownReport } from './report.js';
import { createShutdown, type Shutdown } from './shutdown.js';
import { createStopSignals, type UserPhase } from './stop-signals.js';
import { nextState, type LifecycleInput, type LifecycleState } from './states.js';
import { createWorker, type Worker } from './worker.js';

/** A pool as most drivers have it. */
export interface EndablePool {
  readonly name: string;
  readonly usedBy?: readonly string[];
  end(): Promise<unknown>;
}

export interface ServerOptions {
  /** Default `http`, then `http-2` and so on. */
  readonly name?: string;
  readonly usedBy?: readonly string[];
  /** It serves probes and metrics on a port of its own and is closed last, behind the pools. Default false. */
  readonly management?: boolean;
}

export interface StopOptions {
  /** The process cannot be trusted any more: no lame duck, a short budget, exit code not 0. Default false. */
  readonly crash?: boolean;
}

/**
 * The one object that knows whether the service is starting, running or stopping, and stops it in order. Everything is
 * registered when it is opened; what is registered after the stop began is stopped at once, or in its turn if that is
 * still to come. Registering throws RS_LIFECYCLE_DUPLICATE_NAME for a name that is taken and RS_LIFECYCLE_CYCLE for an
 * order that cannot be kept.
 */
export interface Lifecycle {
  readonly name: string;
  readonly state: LifecycleState;
  /**
   * For what serves several phases, such as an HTTP client: `budgetMs` is the shortest of them, `deadline` the latest.
   */
  readonly signals: StopSignals;
  /** The signals of one phase: `http` for request handlers, `work` for workers and relays, `consumers`. */
  signalsFor(phase: UserPhase): StopSignals;
  /** When what ends, in milliseconds after the stop began. */
  readonly budget: Budget;
  readonly logger: Logger;
  readonly clock: Clock;
  /** Undefined until the stop is complete. */
  readonly report: ShutdownReport | undefined;

  /** The service is ready: readiness may say 200, workers begin. Does nothing once the stop has begun. */
  started(): void;
  /** Drains an `http.Server` on stop. Register it before `listen()`, so that every connection is known. */
  server<Server extends HttpServer>(server: Server, options?: ServerOptions): Server;
  /** Runs a job from `started()` until the stop. */
  worker(job: PeriodicJob, options?: { readonly usedBy?: readonly string[] }): void;
  /** A relay, or another source of work that is told to stop at once and awaited for `workMs`. */
  relay<Stoppable extends Resource>(resource: Stoppable): Stoppable;
  /** Told to stop at once and awaited for `consumersMs`. */
  consumer<Stoppable extends Resource>(resource: Stoppable): Stoppable;
  /** Stopped when HTTP, work and consumers have ended. */
  producer<Stoppable extends Resource>(resource: Stoppable): Stoppable;
  /** Stopped last: pools, and what is to be flushed at the end. */
  pool<Stoppable extends Resource | EndablePool>(resource: Stoppable): Stoppable;

  /** Readiness is 200 only while every check resolves. Outcomes are used again for `checkCacheMs`. */
  readiness(name: string, check: ReadinessCheck): void;
  probe(kind: ProbeKind): Promise<ProbeAnswer>;
  /** Answers GET and HEAD of /health/live and /health/ready. False, and nothing done, for any other request. */
  health(request: IncomingMessage, response: ServerResponse): boolean;

  /** Open connections and requests in flight of each server that is drained. */
  traffic(): readonly HttpTraffic[];
  /** Stops everything, once: every call gets the same report. Never rejects. */
  stop(reason?: string, options?: StopOptions): Promise<ShutdownReport>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @throws RS_LIFECYCLE_BUDGET where the phases do not fit into `graceMs`; RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function createLifecycle(options?: LifecycleOptions): Lifecycle {
  const parsed = parseOptions('createLifecycle', LIFECYCLE_OPTIONS, options);
  const { name, clock, random, quietMs, lingerMs } = parsed;
  const logger = guardedLogger(parsed.logger);
  const budget = planBudget(parsed);
  const signals = createStopSignals(clock, budget);
  const registry = createRegistry();
  const drains: HttpDrain[] = [];
  const workers: Worker[] = [];
  const health = createHealth({
    state: () => state,
    clock,
    logger,
    cacheMs: parsed.checkCacheMs,
    timeoutMs: parsed.checkTimeoutMs,
  });
  let state: LifecycleState = 'starting';
  let crashed = false;
  let shutdown: Shutdown | undefined;
  let stopped: Promise<ShutdownReport> | undefined;
  let report: ShutdownReport | undefined;

  const advance = (input: LifecycleInput): void => {
    state = nextState(state, input);
  };

  const register = (entry: Parameters<typeof registry.add>[0]): void => {
    registry.add(entry);
    shutdown?.join(entry);
  };

  const registerResource =
    (phase: 'work' | 'consumers' | 'producers' | 'pools') =>
    <Stoppable extends Resource | EndablePool>(resource: Stoppable): Stoppable => {
      const method = 'stop' in resource ? 'stop' : 'end';
      if (typeof (resource as Partial<Resource & EndablePool>)[method] !== 'function') {
        throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `"${resource.name}" has neither stop() nor end()` });
      }
      register({
        name: resource.name,
        phase,
        usedBy: resource.usedBy ?? [],
        run: async ({ deadline }) => {
          await ('stop' in resource ? resource.stop(deadline) : resource.end());
          return undefined;
        },
      });
      return resource;
    };

  const runStop = async (reason: string): Promise<ShutdownReport> => {
    const inTime = crashed ? crashBudget(budget, parsed) : budget;
    const running = createShutdown({
      budget: inTime,
      entries: registry.entries,
      clock,
      logger,
      onUsersStopped: () => {
        advance('users-stopped');
      },
    });
    shutdown = running;
    // Readiness before anything else: from the next statement on, everybody who asks is told (R-SHUT-CFG-3).
    advance('stop-requested');
    logger.info({ lifecycle: name, reason, deadlineMs: inTime.totalMs }, 'stopping');
    emit('lifecycle.stop-requested', { reason });
    for (const drain of drains) drain.begin();
    signals.stop(inTime);
    await running.run();
    signals.release();
    advance('all-stopped');

    report = {
      name,
      reason,
      exitCode: exitCodeOf(running.steps, crashed),
      durationMs: running.elapsedMs(),
      phases: running.phases,
      steps: running.steps,
      http: drains.map((drain) => drain.report()),
    };
    const { exitCode, durationMs } = report;
    logger[exitCode === 0 ? 'info' : 'error']({ lifecycle: name, report }, 'stopped');
    emit('lifecycle.stopped', { durationMs, exitCode });
    return report;
  };

  const stop = (reason = 'stop() was called', { crash = false }: StopOptions = {}): Promise<ShutdownReport> => {
    // Noted also when the stop runs already: a process that crashed meanwhile must not report success.
    crashed ||= crash;
    stopped ??= runStop(reason);
    return stopped;
  };

  return {
    name,
    budget,
    logger,
    clock,
    get state() {
      return state;
    },
    get report() {
      return report;
    },
    signals: signals.shared,
    signalsFor: (phase) => signals.of[phase],

    started: () => {
      if (state !== 'starting') return;
      advance('started');
      const unknown = registry.unknownUsers();
      if (unknown.length > 0) logger.warn({ lifecycle: name, names: unknown }, 'usedBy names what is not registered');
      logger.info({ lifecycle: name, budget }, 'started');
      emit('lifecycle.started', { graceMs: parsed.graceMs });
      for (const worker of workers) worker.start();
    },

    server: (server, serverOptions) => {
      const { name: given, usedBy, management } = parseOptions('lifecycle.server', SERVER_OPTIONS, serverOptions);
      const serverName = given ?? registry.freeName('http');
      registry.check(serverName);
      const drain = createHttpDrain({ name: serverName, server, clock, quietMs: management ? 0 : quietMs, lingerMs });
      if (!management) drains.push(drain);
      register({
        name: serverName,
        phase: management ? 'management' : 'http',
        usedBy,
        run: (context) => drain.finish(context),
      });
      return server;
    },

    worker: (job, workerOptions) => {
      const given = { name: job.name, everyMs: job.everyMs, job };
      const { name: jobName } = parseOptions('lifecycle.worker', JOB_OPTIONS, given);
      const { usedBy } = parseOptions('lifecycle.worker', WORKER_OPTIONS, workerOptions);
      const worker = createWorker({ job, signals: signals.of.work, clock, random, logger });
      register({
        name: jobName,
        phase: 'work',
        usedBy,
        run: async () => {
          await worker.ended();
          return undefined;
        },
      });
      workers.push(worker);
      if (state === 'running') worker.start();
    },

    relay: registerResource('work'),
    consumer: registerResource('consumers'),
    producer: registerResource('producers'),
    pool: registerResource('pools'),

    readiness: (checkName, check) => {
      health.addCheck(checkName, check);
    },
    probe: (kind) => health.probe(kind),
    health: (request, response) => {
      const kind = probeOf(request.url);
      if (kind === undefined || (request.method !== 'GET' && request.method !== 'HEAD')) return false;
      void health.probe(kind).then((answer) => {
        if (response.headersSent || response.destroyed) return;
        const body = JSON.stringify(answer.body);
        response.writeHead(answer.status, {
          'content-type': 'application/json',
          'cache-control': 'no-store',
          'content-length': Buffer.byteLength(body),
        });
        response.end(request.method === 'HEAD' ? undefined : body);
      });
      return true;
    },

    traffic: () => drains.map((drain) => drain.traffic()),
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop('disposed');
    },
  };
}
