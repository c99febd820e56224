import { type ShutdownProgress, type ShutdownReport } from './report.js';

/** What Kubernetes reads of a termination message, in bytes. */
export const LONGEST_REPORT = 4_096;

/** What a report file says: the report of a stop that has ended, or what is known of one that had to be cut. */
export type ReportLike = ShutdownReport | (ShutdownProgress & { readonly exitCode: number });

/**
 * The report as JSON that fits into {@link LONGEST_REPORT} bytes: what went wrong comes first and is kept longest, what
 * stopped as it should is left out first.
 */
export function reportText(report: ReportLike): string {
  const steps = report.steps.map(({ name, phase, outcome, durationMs, error }) => ({
    name,
    phase,
    outcome,
    durationMs: Math.round(durationMs),
    ...(error !== undefined && { error: errorText(error) }),
  }));
  const troubled = steps.filter(({ outcome }) => outcome !== 'stopped');
  const { name, reason, exitCode } = report;
  const durationMs = Math.round('durationMs' in report ? report.durationMs : report.elapsedMs);
  const waitingFor = 'waitingFor' in report ? { waitingFor: report.waitingFor } : {};
  const head = { name, reason, exitCode, durationMs, ...waitingFor };
  const phases = report.phases.map((phase) => ({
    ...phase,
    startedMs: Math.round(phase.startedMs),
    durationMs: Math.round(phase.durationMs),
  }));
  const http = 'http' in report ? { http: report.http } : {};
  const candidates = [
    { ...head, steps, phases, ...http },
    { ...head, steps: troubled, phases, ...http },
    { ...head, steps: troubled.map(({ name: step, outcome }) => ({ name: step, outcome })) },
    { name, reason, exitCode, durationMs },
  ].map((candidate) => JSON.stringify(candidate));
  const fitting = candidates.find((text) => Buffer.byteLength(text) <= LONGEST_REPORT);
  return fitting ?? JSON.stringify({ exitCode, durationMs });
}

function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, 200);
}
