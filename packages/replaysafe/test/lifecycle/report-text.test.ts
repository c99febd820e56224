import { describe, expect, it } from 'vitest';
import { LONGEST_REPORT, reportText } from '../../src/lifecycle/report-text.js';
import { type ShutdownReport, type StepReport } from '../../src/lifecycle/report.js';

describe('the text of a report', () => {
  const step = (n: number, outcome: StepReport['outcome']): StepReport => ({
    name: `resource-${n}-${'x'.repeat(40)}`,
    phase: 'work',
    outcome,
    durationMs: 1.23,
    error: outcome === 'failed' ? new Error('y'.repeat(5_000)) : undefined,
  });
  const report = (steps: StepReport[]): ShutdownReport => ({
    name: 'orders',
    reason: 'SIGTERM',
    exitCode: 124,
    durationMs: 12.7,
    phases: [{ phase: 'work', startedMs: 0.5, durationMs: 3.2, forced: true }],
    steps,
    http: [],
  });
  const many = (count: number, outcome: StepReport['outcome']) =>
    Array.from({ length: count }, (_, n) => step(n, outcome));

  it.each([
    ['a few', many(3, 'stopped')],
    ['many that stopped and one that did not', [...many(100, 'stopped'), step(100, 'abandoned')]],
    ['many that failed', many(100, 'failed')],
    ['a thousand that were abandoned', many(1_000, 'abandoned')],
  ])('fits what Kubernetes reads, and is JSON: %s', (_, steps) => {
    const text = reportText(report(steps));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(LONGEST_REPORT);
    expect(JSON.parse(text)).toMatchObject({ exitCode: 124, durationMs: 13 });
  });

  it('leaves out first what stopped as it should', () => {
    const { steps } = JSON.parse(
      reportText(report([...many(100, 'stopped'), step(100, 'abandoned')])),
    ) as ShutdownReport;
    expect(steps.map(({ outcome }) => outcome)).toEqual(['abandoned']);
  });
});
