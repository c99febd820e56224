import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';

const program = fileURLToPath(new URL('../../programs/nest-service.ts', import.meta.url));

interface Line {
  readonly mark?: string;
  readonly signal?: string;
  readonly message?: string;
  readonly report?: { readonly reason: string; readonly exitCode: number };
}

// nestjs/terminus#312: hooks ran twice where the signal had two owners, or close() raced it.
// Nest sends itself the signal again when its hooks are done: that read as 143, and as a second signal to ours.
describe.concurrent('a Nest service that gets SIGTERM leaves with our exit code, and each hook has run once', () => {
  it.each([
    ['express', 'enableShutdownHooks'],
    ['fastify', 'ours alone'],
  ])('on %s, with %s', { timeout: 30_000 }, async (platform, handlers) => {
    const child = spawn(process.execPath, ['--import', 'tsx', program, platform, handlers], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines: Line[] = [];
    const exited = once(child, 'close');
    for await (const text of createInterface(child.stdout)) {
      const line = JSON.parse(text) as Line;
      lines.push(line);
      if (line.mark === 'up') child.kill('SIGTERM');
    }
    expect(await exited).toEqual([0, null]);
    const marks = lines.filter(({ mark }) => mark !== undefined && mark !== 'up');
    expect(marks.map(({ mark }) => mark)).toEqual(['destroy', 'shutdown']);
    expect(marks[1]!.signal).toBe('SIGTERM');
    expect(lines.find(({ message }) => message === 'stopped')!.report).toMatchObject({
      reason: 'SIGTERM',
      exitCode: 0,
    });
  });
});
