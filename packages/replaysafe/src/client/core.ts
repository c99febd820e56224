import { Pool } from 'undici';
import { emit } from '../events.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { Breaker } from './breaker.js';
import { Bulkhead } from './bulkhead.js';
import { CallerSignals } from './caller-signals.js';
import { Deadlines } from './deadlines.js';
import type { HttpClientOptions, ParsedClientOptions } from './http-client-options.js';
import { RetryBudget } from './retry-budget.js';
import type { RunningCall } from './running-call.js';

/** What the calls of one client share: the layers of one remote system, each made once. */
export interface Core {
  readonly name: string;
  readonly settings: ParsedClientOptions;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly pool: Pool;
  readonly breaker: Breaker;
  readonly bulkhead: Bulkhead<RunningCall>;
  readonly budget: RetryBudget;
  readonly deadlines: Deadlines;
  readonly callers: CallerSignals;
  /** Whether calls may no longer wait for anything. */
  stopping: boolean;
  /** Gives the slot of one try back, to whoever has waited longest for one. */
  freeSlot(): void;
}

export function createCore(options: HttpClientOptions, settings: ParsedClientOptions): Core {
  const { name, timeouts } = settings;
  const clock = options.clock ?? systemClock;
  const logger = options.logger ?? silentLogger;
  const breaker = new Breaker(
    settings.breaker,
    () => clock.monotonicMs(),
    (from, to) => {
      emit('client.breaker-changed', { client: name, from, to });
      logger.warn({ client: name, from, to }, 'the circuit breaker of a remote system changed its state');
    },
  );
  const bulkhead = new Bulkhead<RunningCall>(settings.bulkhead);
  return {
    name,
    settings,
    clock,
    random: options.random ?? systemRandom,
    logger,
    breaker,
    bulkhead,
    budget: new RetryBudget(settings.retry.budget),
    deadlines: new Deadlines(clock),
    callers: new CallerSignals(),
    pool: new Pool(settings.origin, {
      connections: settings.connections,
      // One request at a time on a connection: behind a pipelined one, a reset would leave the outcome of both unknown.
      pipelining: 1,
      connectTimeout: timeouts.connectMs,
      // Ours are exact, and on the one timer of all calls; the pool's look about once a second.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: settings.maxResponseBytes,
    }),
    stopping: false,
    freeSlot: () => {
      const next = bulkhead.leave();
      // The pool tells of the end of a request before it takes the connection back.
      if (next !== undefined) {
        queueMicrotask(() => {
          next.granted();
        });
      }
    },
  };
}
