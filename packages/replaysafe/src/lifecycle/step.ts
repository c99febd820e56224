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

/**
 * Runs one step of the stop, isolated: never rejects, never takes longer than to its end. What throws is `failed`, what
 * ended only because its deadline aborted is `forced`, what did not even end then is `abandoned`.
 */
export async function runStep(clock: Clock, step: Step): Promise<StepReport> {
  const startedAtMs = clock.monotonicMs();
  const budgetMs = Math.max(0, step.endsAtMs - startedAtMs);
  const controller = new AbortController();
  const settleMs = settleTime(budgetMs);
  const abortAfterMs = budgetMs - settleMs;

  let abandon: () => void = () => undefined;
  const abandoned = new Promise<Ending>((resolve) => {
    abandon = () => {
      resolve({ outcome: 'abandoned' });
    };
  });
  let timer = clock.setTimer(abortAfterMs, () => {
    controller.abort(new Error(`"${step.name}" did not stop within ${Math.round(abortAfterMs)} ms`));
    // Set only now: an event loop that was blocked would otherwise fire both at once, and nothing could be given back.
    timer = clock.setTimer(settleMs, abandon);
  });

  const context: StepContext = {
    deadline: controller.signal,
    settleMs,
    remainingMs: () => Math.max(0, startedAtMs + abortAfterMs - clock.monotonicMs()),
  };
  const { outcome, error } = await Promise.race([attempt(step, context), abandoned]);
  timer.cancel();
  return {
    name: step.name,
    phase: step.phase,
    outcome,
    durationMs: clock.monotonicMs() - startedAtMs,
    error,
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
