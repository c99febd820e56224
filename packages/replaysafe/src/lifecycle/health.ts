import { type Clock } from '../ports/clock.js';
import { type Logger } from '../ports/logger.js';
import { type LifecycleState } from './states.js';

export type ProbeKind = 'live' | 'ready';

export interface ProbeAnswer {
  readonly status: 200 | 503;
  readonly body: {
    readonly status: 'ok' | 'unavailable';
    readonly state: LifecycleState;
    /** Each readiness check by name; only in `ready` answers of a running service. */
    readonly checks?: Readonly<Record<string, CheckOutcome>>;
  };
}

export type CheckOutcome = 'ok' | 'failed' | 'timed-out';
export type ReadinessCheck = () => Promise<void> | void;

export interface HealthOptions {
  readonly state: () => LifecycleState;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long a check's outcome is used again, in milliseconds. */
  readonly cacheMs: number;
  /** How long a check may take, in milliseconds. */
  readonly timeoutMs: number;
}

export interface Health {
  addCheck(name: string, check: ReadinessCheck): void;
  probe(kind: ProbeKind): Promise<ProbeAnswer>;
}

export const HEALTH_PATHS: Readonly<Record<string, ProbeKind>> = {
  '/health/live': 'live',
  '/health/ready': 'ready',
};

/** Which probe a request target asks for, if any. The query does not matter. */
export function probeOf(target: string | undefined): ProbeKind | undefined {
  const path = target?.split('?', 1)[0] ?? '';
  return Object.hasOwn(HEALTH_PATHS, path) ? HEALTH_PATHS[path] : undefined;
}

/**
 * Answers the probes from the lifecycle's state. Liveness is fine until all is closed, so that nobody restarts a process
 * that is finishing its work; readiness is fine only while running, with every check fine (R-SHUT-3, R-SHUT-CFG-4).
 */
export function createHealth(options: HealthOptions): Health {
  const checks = new Map<string, () => Promise<CheckOutcome>>();

  return {
    addCheck: (name, check) => {
      checks.set(name, cachedCheck(name, check, options));
    },
    probe: async (kind) => {
      if (kind === 'live') return answer(options.state() !== 'closed', options.state());
      if (options.state() !== 'running') return answer(false, options.state());
      const outcomes = await Promise.all([...checks].map(async ([name, run]) => [name, await run()] as const));
      const fine = outcomes.every(([, outcome]) => outcome === 'ok');
      // The state is read again: the stop may have begun while the checks ran, and readiness must be the first to say so.
      return answer(fine && options.state() === 'running', options.state(), Object.fromEntries(outcomes));
    },
  };
}

function answer(fine: boolean, state: LifecycleState, checks?: Record<string, CheckOutcome>): ProbeAnswer {
  const body = { status: fine ? 'ok' : 'unavailable', state } as const;
  return { status: fine ? 200 : 503, body: checks === undefined ? body : { ...body, checks } };
}

/** Probes that come together share one run, and the next ones its outcome for `cacheMs`. */
function cachedCheck(name: string, check: ReadinessCheck, options: HealthOptions): () => Promise<CheckOutcome> {
  const { clock, logger, cacheMs, timeoutMs } = options;
  let latest: { readonly outcome: Promise<CheckOutcome>; endedAtMs: number | undefined } | undefined;
  let reported: CheckOutcome = 'ok';
  // One that hangs is waited for again, not started again: probes must not heap up calls on what is stuck already.
  let running: Promise<CheckEnding> | undefined;

  const run = async (): Promise<CheckOutcome> => {
    running ??= runCheck(check).finally(() => {
      running = undefined;
    });
    const { outcome, error } = await within(running, clock, timeoutMs);
    if (outcome !== reported) {
      // Once for each change: a probe every second would fill the log. What failed is for the log, not for the answer.
      if (outcome === 'ok') logger.info({ check: name }, 'readiness check is fine again');
      else logger.warn({ check: name, outcome, err: error }, 'readiness check fails');
      reported = outcome;
    }
    return outcome;
  };

  return () => {
    const now = clock.monotonicMs();
    if (latest && (latest.endedAtMs === undefined || now - latest.endedAtMs < cacheMs)) return latest.outcome;
    const entry: NonNullable<typeof latest> = { outcome: run(), endedAtMs: undefined };
    latest = entry;
    void entry.outcome.then(() => {
      entry.endedAtMs = clock.monotonicMs();
    });
    return entry.outcome;
  };
}

interface CheckEnding {
  readonly outcome: CheckOutcome;
  readonly error?: unknown;
}

async function within(running: Promise<CheckEnding>, clock: Clock, timeoutMs: number): Promise<CheckEnding> {
  let timeOut: () => void = () => undefined;
  const late = new Promise<CheckEnding>((resolve) => {
    timeOut = () => {
      resolve({ outcome: 'timed-out' });
    };
  });
  const timer = clock.setTimer(
    timeoutMs,
    () => {
      timeOut();
    },
    { keepAlive: false },
  );
  const ending = await Promise.race([running, late]);
  timer.cancel();
  return ending;
}

async function runCheck(check: ReadinessCheck): Promise<CheckEnding> {
  try {
    await check();
    return { outcome: 'ok' };
  } catch (error) {
    return { outcome: 'failed', error };
  }
}
