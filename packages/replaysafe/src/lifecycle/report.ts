import { type Phase } from './phases.js';

/**
 * - `stopped`: ended by itself, in time.
 * - `failed`: threw.
 * - `forced`: ended because its deadline came; something may have been cut.
 * - `abandoned`: did not end even then.
 */
export type StepOutcome = 'stopped' | 'failed' | 'forced' | 'abandoned';

export interface StepReport {
  readonly name: string;
  readonly phase: Phase;
  readonly outcome: StepOutcome;
  readonly durationMs: number;
  /** What it threw, if it failed. */
  readonly error: unknown;
}

export interface PhaseReport {
  readonly phase: Phase | 'lame-duck';
  /** Milliseconds after the stop began. */
  readonly startedMs: number;
  readonly durationMs: number;
  /** Whether something in it was cut or abandoned. */
  readonly forced: boolean;
}

/** What the drain of one server saw, counted from the first moment of the stop. */
export interface HttpDrainReport {
  readonly server: string;
  /** Requests that arrived during the drain and were served. */
  readonly requests: number;
  /** Requests that began after the lame duck and were answered 503, with `lateRequests: 'refuse'`. */
  readonly refused: number;
  /** Responses that were not complete at the deadline. */
  readonly cut: number;
  /** Requests that had not arrived completely at the deadline and were answered 408. */
  readonly timedOut: number;
  /** Connections on which bytes arrived after our FIN. Nothing of them was processed. */
  readonly lateAfterFin: number;
}

/** 0 only if nothing was cut; 1 the process crashed or a step failed; 124 something overran its deadline. */
export type ShutdownExitCode = 0 | 1 | 124;

export interface ShutdownReport {
  readonly name: string;
  readonly reason: string;
  readonly exitCode: ShutdownExitCode;
  /** The whole stop. */
  readonly durationMs: number;
  readonly phases: readonly PhaseReport[];
  readonly steps: readonly StepReport[];
  readonly http: readonly HttpDrainReport[];
}

/** What is known of a stop that is under way. */
export interface ShutdownProgress {
  readonly name: string;
  readonly reason: string;
  /** Since the stop began. */
  readonly elapsedMs: number;
  readonly phases: readonly PhaseReport[];
  readonly steps: readonly StepReport[];
  /** Names of what has not stopped yet. */
  readonly waitingFor: readonly string[];
}

/** The exit code after an uncaught error, whatever became of the stop. */
export const crashExitCode = 1;

export function exitCodeOf(steps: readonly StepReport[], crashed: boolean): ShutdownExitCode {
  if (crashed) return crashExitCode;
  if (steps.some(overran)) return 124;
  return steps.some((step) => step.outcome === 'failed') ? 1 : 0;
}

export function overran(step: StepReport): boolean {
  return step.outcome === 'forced' || step.outcome === 'abandoned';
}
