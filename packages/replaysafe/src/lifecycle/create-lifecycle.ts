import { ReplaysafeError } from '../errors.js';
import { emit } from '../events.js';
import { parseOptions } from '../options.js';
import { type Resource } from '../ports/stop.js';
import { crashBudget, planBudget } from './budget.js';
import { LIFECYCLE_OPTIONS, SERVER_OPTIONS, type LifecycleOptions } from './lifecycle-options.js';
import { answerProbe } from './answer-probe.js';
import { type HttpServer } from './connections.js';
import { createGoodbyes } from './goodbyes.js';
import { createHealth } from './health.js';
import { createHttpDrain, type HttpDrain } from './http-drain.js';
import { guardedLogger } from '../ports/guarded-logger.js';
import { type EndablePool, type Lifecycle, type StopOptions } from './lifecycle.js';
import { answerPrestop, createPrestop } from './prestop.js';
import { createRegistry } from './registry.js';
import { exitCodeOf, type ShutdownReport } from './report.js';
import { createShutdown, type Shutdown } from './shutdown.js';
import { createStopSignals } from './stop-signals.js';
import { nextState, type LifecycleInput, type LifecycleState } from './states.js';
import { parseWorker } from './worker-options.js';
import { createWorker, type Worker } from './worker.js';

/**
 * @throws RS_LIFECYCLE_BUDGET where the phases do not fit into `graceMs`; RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function createLifecycle(options?: LifecycleOptions): Lifecycle {
  const parsed = parseOptions('createLifecycle', LIFECYCLE_OPTIONS, options);
  const { name, clock, random } = parsed;
  const logger = guardedLogger(parsed.logger);
  const budget = planBudget(parsed);
  const signals = createStopSignals(clock, budget);
  const registry = createRegistry();
  const drains: HttpDrain[] = [];
  const managementDrains: HttpDrain[] = [];
  const servers = new WeakSet<HttpServer>();
  const goodbyes = createGoodbyes(logger);
  const prestop = createPrestop({ clock, drains: managementDrains, stop: () => stop('prestop') });
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
  let stopReason: string | undefined;
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
      if (Object(resource) !== resource) {
        throw new ReplaysafeError('RS_OPTION_INVALID', {
          detail: 'what is registered must be an object with a name',
        });
      }
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
        prestop.release();
      },
    });
    shutdown = running;
    // Readiness before anything else: from the next statement on, everybody who asks is told (R-SHUT-CFG-3).
    advance('stop-requested');
    logger.info({ lifecycle: name, reason, deadlineMs: inTime.totalMs }, 'stopping');
    emit('lifecycle.stop-requested', { reason });
    prestop.stopBegun(inTime.lameDuckMs);
    for (const drain of drains) drain.begin(inTime.lameDuckMs);
    goodbyes.sayAll();
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

  const stop = (reason = 'stop() was called', stopOptions?: StopOptions): Promise<ShutdownReport> => {
    // Never rejects, nor throws: whoever stops is in trouble enough.
    const crash = (stopOptions as StopOptions | null | undefined)?.crash ?? false;
    // Noted also when the stop runs already: a process that crashed meanwhile must not report success, nor take its time.
    if (crash && !crashed && shutdown && !report) {
      const short = crashBudget(budget, parsed);
      shutdown.hurry(short);
      signals.stop(short);
    }
    crashed ||= crash;
    stopReason ??= reason;
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
    get reason() {
      return stopReason;
    },
    get report() {
      return report;
    },
    get progress() {
      if (!shutdown || stopReason === undefined) return undefined;
      const { phases, steps } = shutdown;
      const ended = new Set(steps.map((step) => step.name));
      const waitingFor = [...registry.entries.keys()].filter((entry) => !ended.has(entry));
      return { name, reason: stopReason, elapsedMs: shutdown.elapsedMs(), phases, steps, waitingFor };
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
      if (typeof (server as Partial<HttpServer> | undefined)?.listen !== 'function') {
        throw new ReplaysafeError('RS_OPTION_INVALID', {
          detail: 'lifecycle.server needs a server of node:http, node:https or node:http2',
        });
      }
      if (servers.has(server)) return server;
      const { name: given, usedBy, management } = parseOptions('lifecycle.server', SERVER_OPTIONS, serverOptions);
      const serverName = given ?? registry.freeName('http');
      registry.check(serverName);
      const drain = createHttpDrain({
        ...parsed,
        name: serverName,
        server,
        goodbyes,
        quietMs: management ? 0 : parsed.quietMs,
        lateRequests: management ? 'serve' : parsed.lateRequests,
      });
      servers.add(server);
      (management ? managementDrains : drains).push(drain);
      register({
        name: serverName,
        phase: management ? 'management' : 'http',
        usedBy,
        run: (context) => drain.finish(context),
      });
      return server;
    },

    longLived: (connection, goodbye) => {
      goodbyes.add(connection, goodbye);
    },

    worker: (job: { readonly name: string }, workerOptions?: object) => {
      const parsedWorker = parseWorker(job, workerOptions);
      const worker = createWorker({ worker: parsedWorker, signals: signals.of.work, clock, random, logger });
      register({
        name: parsedWorker.name,
        phase: 'work',
        usedBy: parsedWorker.usedBy,
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
    health: (request, response) => answerProbe(health, request, response),

    prestop: (request, response) => answerPrestop(prestop, request, response),
    onPrestop: prestop.onBegun,

    traffic: () => drains.map((drain) => drain.traffic()),
    stop,
    [Symbol.asyncDispose]: async () => {
      await stop('disposed');
    },
  };
}
