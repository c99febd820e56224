import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { logLine } from '../../src/lifecycle/stderr-logger.js';

it('tells of a crash at start-up where no logger was given', { timeout: 60_000 }, async () => {
  const program = fileURLToPath(new URL('../programs/crash-at-start.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', program], { stdio: ['ignore', 'ignore', 'pipe'] });
  const [written, ended] = await Promise.all([text(child.stderr), once(child, 'close')]);
  expect(ended).toEqual([1, null]);
  expect(written).toMatch(
    /^error: uncaught error \{"origin":"uncaughtException","pid":\d+\}\nError: boom\n {4}at .*crash-at-start/,
  );
  expect(written).toMatch(/\ncaused by Error: connect ECONNREFUSED\n(.*\n)* {4}code: ECONNREFUSED\n/);
});

it('shows what was thrown without its own fields, and never fails over it', () => {
  const first = new Error('connect ECONNREFUSED ::1:5432');
  const cause = Object.assign(new AggregateError([first], ''), { detail: 'Key (email)=(a@b.c) exists' });
  const line = logLine('error', { err: new Error('boom', { cause }), n: 1n }, 'm');
  expect(line).toMatch(/^error: m \{"n":"1"\}\nError: boom\n/);
  expect(line).toContain('caused by Error: connect ECONNREFUSED ::1:5432\n');
  expect(line).not.toContain('a@b.c');
  const circle: Record<string, unknown> = {};
  circle['circle'] = circle;
  expect(logLine('warn', circle, 'm')).toBe('warn: m {}\n');
  expect(logLine('warn', { err: 'text' }, 'm')).toBe('warn: m {"err":"text"}\n');
});
