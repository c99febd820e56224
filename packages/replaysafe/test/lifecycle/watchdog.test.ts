import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { LONGEST_REPORT, reportText } from '../../src/lifecycle/report-text.js';
import { type ShutdownReport, type StepReport } from '../../src/lifecycle/report.js';
import { startService } from './child.js';

const SHORT = {
  graceMs: 1_000,
  lameDuckMs: 0,
  httpDrainMs: 200,
  workMs: 200,
  consumersMs: 200,
  producersMs: 100,
  poolReserveMs: 100,
  exitMarginMs: 400,
  quietMs: 0,
  lingerMs: 10,
};
const folder = mkdtempSync(join(tmpdir(), 'replaysafe-report-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));

describe.concurrent('the report file', () => {
  it('R-SHUT-OBS-3: holds the report of a stop that ended by itself', async () => {
    const reportFile = join(folder, 'clean');
    const service = await startService({ budget: SHORT, reportFile });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(read(reportFile)).toMatchObject({ name: 'test-service', reason: 'SIGTERM', exitCode: 0 });
  });

  it('names what was abandoned, and says 124', async () => {
    const reportFile = join(folder, 'abandoned');
    const service = await startService({ budget: SHORT, reportFile, faults: { relay: 'hang', pool: 'hang' } });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 124, signal: null });
    const { steps, exitCode } = read(reportFile) as ShutdownReport;
    expect(exitCode).toBe(124);
    expect(steps.filter(({ outcome }) => outcome === 'abandoned').map(({ name }) => name)).toEqual(['relay', 'pool']);
  });

  it('that cannot be written is a warning, not another exit code', async () => {
    const service = await startService({ budget: SHORT, reportFile: join(folder, 'nowhere', 'report') });
    service.kill('SIGTERM');
    expect((await service.exited).code).toBe(0);
    expect(service.lines.some(({ level, message }) => level === 'warn' && message?.includes('report'))).toBe(true);
  });
});

describe.concurrent('the watchdog', () => {
  it('kills a process whose event loop is blocked in the stop, and writes what it knows first', async () => {
    const reportFile = join(folder, 'blocked');
    const service = await startService({ budget: SHORT, reportFile, faults: { producer: 'block' } });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: null, signal: 'SIGKILL' });
    const report = read(reportFile) as { exitCode: number; waitingFor: string[]; steps: StepReport[] };
    expect(report).toMatchObject({ reason: 'SIGTERM', exitCode: 137 });
    expect(report.waitingFor).toEqual(['producer', 'pool']);
    expect(report.steps.map(({ name }) => name)).toContain('relay');
    expect(service.stderr()).toContain('the event loop is blocked');
  });

  it('kills one that is blocked from the first moment of the stop', async () => {
    const reportFile = join(folder, 'blocked-at-once');
    const service = await startService({ budget: SHORT, reportFile, faults: { relay: 'block' } });
    service.kill('SIGTERM');
    expect((await service.exited).signal).toBe('SIGKILL');
    expect((read(reportFile) as { waitingFor: string[] }).waitingFor).toContain('relay');
  });
});

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
