import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
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
