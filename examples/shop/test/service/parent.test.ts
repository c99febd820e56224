import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, test } from 'vitest';

const program = fileURLToPath(new URL('../programs/waits-for-parent.ts', import.meta.url));
const node = `"${process.execPath}" --import tsx "${program}"`;
const started: ChildProcess[] = [];

function shell(command: string, env: Record<string, string> = {}) {
  // A group of its own, so that whatever a failed test leaves can be ended together.
  const child = spawn('sh', ['-c', command], {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.push(child);
  return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator]() };
}

afterEach(() => {
  for (const child of started.splice(0)) {
    try {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    } catch {
      // All of the group are gone, as they should be.
    }
  }
});

describe('a program whose parent disappears', { timeout: 20_000 }, () => {
  test('is told when the shell that started it is killed', async () => {
    const { child, lines } = shell(`${node}; true`);
    expect((await lines.next()).value).toBe('watching');
    child.kill('SIGTERM');
    expect((await lines.next()).value).toBe('gone');
  });

  test.runIf(process.platform === 'linux')('is told when npm is killed and the shell between lives on', async () => {
    // The outer shell stands for npm; the inner one waits for the program, as npm's does.
    const { child, lines } = shell(`sh -c '${node}; true'; true`, { npm_lifecycle_event: 'shop' });
    expect((await lines.next()).value).toBe('watching');
    child.kill('SIGKILL');
    expect((await lines.next()).value).toBe('gone');
  });
});
