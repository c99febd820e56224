import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type Resource, type StopSignals } from '../ports/stop.js';
import { type Budget } from './budget.js';
import { type HttpServer } from './connections.js';
import { type Goodbye, type LongLivedConnection } from './goodbyes.js';
import { type ProbeAnswer, type ProbeKind, type ReadinessCheck } from './health.js';
import { type HttpTraffic } from './http-drain.js';
import { type ShutdownProgress, type ShutdownReport } from './report.js';
import { type LifecycleState } from './states.js';
import { type UserPhase } from './stop-signals.js';
import { type LeasedRunContext, type LeasedWorkerOptions, type WorkerJob, type WorkerOptions } from './worker-job.js';

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
  /** Why it stops, e.g. `SIGTERM`; undefined before the stop has begun. */
  readonly reason: string | undefined;
  /** Undefined until the stop is complete. */
  readonly report: ShutdownReport | undefined;
  /** What has stopped so far, and what has not; undefined until the stop begins. */
  readonly progress: ShutdownProgress | undefined;

  /** The service is ready: readiness may say 200, workers begin. Does nothing once the stop has begun. */
  started(): void;
  /**
   * Drains a server of `node:http`, `node:https` or `node:http2` on stop. Register it before `listen()`, so that every connection is
   * known. A server that is registered already is left as it is.
   */
  server<Server extends HttpServer>(server: Server, options?: ServerOptions): Server;
  /**
   * Registers the goodbye of a response without an end, or of an upgraded socket (`request.socket`): called once, when the
   * stop begins, or after the lame duck for what begins during it. The connection is then waited for until the deadline of
   * HTTP. Without a goodbye, responses of type `text/event-stream` are ended and WebSockets get a close frame 1001.
   * @throws RS_OPTION_INVALID
   */
  longLived(connection: LongLivedConnection, goodbye: Goodbye): void;
  /**
   * Runs a job from `started()` until the stop: the run under way is awaited for `workMs`, none begins. With `lease` one process
   * of all runs it at a time, and another one when that is gone.
   * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
   */
  worker<Tx>(job: WorkerJob<LeasedRunContext<Tx>>, options: LeasedWorkerOptions<Tx>): void;
  worker(job: WorkerJob, options?: WorkerOptions): void;
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

  /**
   * Answers GET /-/prestop on a server registered with `management: true`, for the pre-stop hook: begins the stop, with the
   * reason `prestop`, and answers when `propagationDelayMs` (or the lame duck, if that is longer) is over. A second call and
   * a signal meanwhile join the same stop. False, and nothing done, for any other request and on any other server.
   */
  prestop(request: IncomingMessage, response: ServerResponse): boolean;
  /** For `installSignals`: called when a request to /-/prestop begins the stop, which no signal may follow. */
  onPrestop(listener: () => void): () => void;

  /** Open connections and requests in flight of each server that is drained. */
  traffic(): readonly HttpTraffic[];
  /** Stops everything, once: every call gets the same report. Never rejects. */
  stop(reason?: string, options?: StopOptions): Promise<ShutdownReport>;
  [Symbol.asyncDispose](): Promise<void>;
}
