import { custom } from '../options.js';

/**
 * How the lifecycle tells the other rooms about the end. `stopping`: start nothing new. `deadline`: abort now. A critical
 * section listens to the second only (R-SHUT-SCHED-2).
 */
export interface StopSignals {
  readonly stopping: AbortSignal;
  readonly deadline: AbortSignal;
  /** What the phase of the room that asks may take, in milliseconds; known from the start. */
  readonly budgetMs: number;
}

/** Work done again and again: a sweep, a pruning, a cleaner. The lifecycle runs it as a worker. */
export interface PeriodicJob {
  readonly name: string;
  /** Milliseconds from the end of one run to the start of the next. */
  readonly everyMs: number;
  run(context: { readonly stopping: AbortSignal; readonly deadline: AbortSignal }): Promise<void>;
}

/** Something that must be stopped, after all that use it. */
export interface Resource {
  readonly name: string;
  /** Names of the resources that must have stopped before this one is told to. */
  readonly usedBy?: readonly string[];
  /** Resolves when nothing of it is left; gives up what it holds when `deadline` aborts. Harmless when called twice. */
  stop(deadline: AbortSignal): Promise<void>;
}

/** Reads the option `signals` of every room that has one. */
export const stopSignals = custom<StopSignals>((given) => {
  const candidate = given as Partial<StopSignals> | null;
  const usable =
    typeof candidate === 'object' &&
    candidate?.stopping instanceof AbortSignal &&
    candidate.deadline instanceof AbortSignal &&
    typeof candidate.budgetMs === 'number';
  return usable ? undefined : 'must be the signals of a lifecycle: { stopping, deadline, budgetMs }';
});
