import { type Clock } from '../ports/clock.js';
import { type Phase } from './phases.js';
import { type StepOutcome, type StepReport } from './report.js';

export interface StepContext {
  /** Aborts shortly before the step's end, so that what is given up can still be given back. */
  readonly deadline: AbortSignal;
  /** Milliseconds until the deadline aborts. */
  readonly remainingMs: () => number;
  /** What is left to the step once its deadline has aborted, in milliseconds. */
  readonly settleMs: number;
}

/** What a step may say about itself; without it, a step that ended after its deadline counts as forced. */
export interface StepResult {
  readonly forced: boolean;
}

export interface Step {
  readonly name: string;
  readonly phase: Phase;
  /** In terms of `clock.monotonicMs()`. */
  readonly endsAtMs: number;
  run(context: StepContext): Promise<StepResult | undefined>;
}

/** The part of a step's time that is left to it after its deadline has aborted, at most. */
const SETTLE_MS = 500;
const SETTLE_SHARE = 0.25;

export function settleTime(budgetMs: number): number {
  return Math.min(SETTLE_MS, Math.max(0, budgetMs) * SETTLE_SHARE);
}

export interface RunningStep {
  readonly report: Promise<StepReport>;
  /** Brings the end of a step that runs forward, in terms of `clock.monotonicMs()`; a later one changes nothing. */
  hurry(endsAtMs: number): void;
}

/**
 * Runs one step of the stop, isolated: never rejects, never takes longer than to its end. What throws is `failed`, what
 * ended only because its deadline aborted is `forced`, what did not even end then is `abandoned`.
 */
export function runStep(clock: Clock, step: Step): RunningStep {
  const startedAtMs = clock.monotonicMs();
  const controller = new AbortController();
  const settleMs = settleTime(step.endsAtMs - startedAtMs);
  let abortAtMs = Math.max(startedAtMs, step.endsAtMs - settleMs);
  let ended = false;

  let abandon: () => void = () => undefined;
  const abandoned = new Promise<Ending>((resolve) => {
    abandon = () => {
      resolve({ outcome: 'abandoned' });
    };
  });
  const abort = (): void => {
    controller.abort(new Error(`"${step.name}" did not stop within ${Math.round(abortAtMs - startedAtMs)} ms`));
    // Set only now: an event loop that was blocked would otherwise fire both at once, and nothing could be given back.
    timer = clock.setTimer(settleMs, abandon);
  };
  let timer = clock.setTimer(abortAtMs - startedAtMs, abort);

  const context: StepContext = {
    deadline: controller.signal,
    settleMs,
    remainingMs: () => Math.max(0, abortAtMs - clock.monotonicMs()),
  };
  const report = Promise.race([attempt(step, context), abandoned]).then(({ outcome, error }): StepReport => {
    ended = true;
    timer.cancel();
    return {
      name: step.name,
      phase: step.phase,
      outcome,
      durationMs: clock.monotonicMs() - startedAtMs,
      error,
    };
  });
  return {
    report,
    hurry: (endsAtMs) => {
      const nowMs = clock.monotonicMs();
      const earlierMs = Math.max(nowMs, endsAtMs - settleMs);
      if (ended || controller.signal.aborted || earlierMs >= abortAtMs) return;
      abortAtMs = earlierMs;
      timer.cancel();
      timer = clock.setTimer(abortAtMs - nowMs, abort);
    },
  };
}

interface Ending {
  readonly outcome: StepOutcome;
  readonly error?: unknown;
}

async function attempt(step: Step, context: StepContext): Promise<Ending> {
  try {
    const result = await step.run(context);
    const forced = result?.forced ?? context.deadline.aborted;
    return { outcome: forced ? 'forced' : 'stopped' };
  } catch (error) {
    return { outcome: 'failed', error };
  }
}
