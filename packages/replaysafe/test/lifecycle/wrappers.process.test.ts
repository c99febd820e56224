import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

const program = fileURLToPath(new URL('../programs/lifecycle-service.ts', import.meta.url));
const tsx = createRequire(import.meta.url).resolve('tsx');
const node = `${process.execPath} --import ${tsx} ${program}`;
const folder = mkdtempSync(join(tmpdir(), 'replaysafe-wrappers-'));
const groups: number[] = [];
afterAll(() => {
  for (const pid of groups) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // All of it has ended.
    }
  }
  rmSync(folder, { recursive: true });
});

/** Starts a wrapper in a process group of its own, sends SIGTERM to whom `target` says when the service is up, and waits. */
async function stopUnder(
  command: string,
  args: readonly string[],
  target: (child: ChildProcess) => number = (child) => child.pid!,
): Promise<{ code: unknown; signal: unknown; stopped: boolean; output: string }> {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], detached: true });
  groups.push(child.pid!);
  let output = '';
  let sent = false;
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (sent || !output.includes('"up"')) return;
    sent = true;
    process.kill(target(child), 'SIGTERM');
  });
  const [code, signal] = (await once(child, 'exit')) as unknown[];
  return { code, signal, stopped: output.includes('"message":"stopped"'), output };
}

describe.concurrent('R-SHUT-1: a service stops in order', () => {
  it('under tsx', async () => {
    const cli = join(createRequire(import.meta.url).resolve('tsx/package.json'), '../dist/cli.mjs');
    expect(await stopUnder(process.execPath, [cli, program])).toMatchObject({ code: 0, stopped: true });
  });

  it('under npm start, where the script says exec', async () => {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'x', scripts: { start: `exec ${node}` } }));
    expect(await stopUnder('npm', ['start', '--silent'])).toMatchObject({ code: 0, stopped: true });
  });

  it('under a shell that says exec', async () => {
    expect(await stopUnder('sh', ['-c', `true; exec ${node}`])).toMatchObject({ code: 0, stopped: true });
  });

  it('under node --watch', async () => {
    const [command = '', ...args] = node.split(' ');
    expect(await stopUnder(command, ['--watch', ...args])).toMatchObject({ stopped: true });
  });
});

const mayUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;
const child = (wrapper: ChildProcess): number =>
  Number(readFileSync(`/proc/${wrapper.pid!}/task/${wrapper.pid!}/children`, 'utf8').trim().split(' ')[0]);

describe.skipIf(!mayUnshare)('in a PID namespace (skipped where this user may not make one)', () => {
  it('as PID 1, which has no default handlers: stops in order', async () => {
    const args = ['--pid', '--fork', '--mount-proc', ...node.split(' ')];
    const { stopped, output } = await stopUnder('unshare', args, child);
    expect(stopped).toBe(true);
    expect(output).not.toContain('PID 1 is');
  });

  it('under a shell as PID 1: warns at start that no signal will come', async () => {
    const script = `${node} > ${folder}/out; true`;
    const args = ['--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-c', script];
    const wrapper = spawn('unshare', args, { stdio: 'ignore', detached: true });
    groups.push(wrapper.pid!);
    await expect
      .poll(() => readFileSync(join(folder, 'out'), { encoding: 'utf8', flag: 'a+' }), { timeout: 20_000 })
      .toContain('PID 1 is sh, which does not hand on SIGTERM');
    process.kill(-wrapper.pid!, 'SIGKILL');
  });
});
