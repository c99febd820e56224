import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { killAt, parseKillPoint, readKillList, writeKillList } from '../src/index.js';

const program = fileURLToPath(new URL('programs/three-events.ts', import.meta.url));
const preload = new URL('../src/preload.ts', import.meta.url).href;

async function run(env: Record<string, string>) {
  const child = spawn(process.execPath, ['--import', 'tsx', '--import', preload, program], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { lines: stdout.trimEnd().split('\n'), stderr, code, signal };
}

describe('killAt', { timeout: 20_000 }, () => {
  test('stops the process inside the n-th event, before its next statement', async () => {
    const { lines, stderr, signal } = await run({ REPLAYSAFE_KILL_AT: 'outbox.marked:2' });
    expect(signal).toBe('SIGKILL');
    expect(lines).toEqual(['before 1', 'after 1', 'before 2']);
    expect(stderr).toContain('SIGKILL at outbox.marked:2');
  });

  test('kills once among all who share a marker file', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'crashkit-'));
    try {
      const env = { REPLAYSAFE_KILL_AT: 'outbox.marked', REPLAYSAFE_KILL_MARKER: join(folder, 'killed') };
      expect((await run(env)).signal).toBe('SIGKILL');
      const second = await run(env);
      expect(second.signal).toBeNull();
      expect(second.lines).toHaveLength(6);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('leaves a process alone that is told nothing', async () => {
    expect(await run({ REPLAYSAFE_KILL_AT: '' })).toMatchObject({ code: 0, signal: null });
  });
});

describe('a kill list', { timeout: 20_000 }, () => {
  test('is worked off line by line, over one process after another', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'crashkit-'));
    const list = join(folder, 'list');
    const env = { REPLAYSAFE_KILL_LIST: list };
    try {
      writeKillList(list, ['outbox.marked:5:SIGKILL', 'outbox.claimed']);
      expect((await run(env)).lines).toHaveLength(6);
      const second = await run(env);
      expect(second.lines).toEqual(['before 1', 'after 1', 'before 2']);
      expect(second.stderr).toContain('SIGKILL at outbox.marked:1, pid');
      // The next line is of another event.
      expect((await run(env)).lines).toHaveLength(6);
      expect(readKillList(list)).toEqual(['outbox.claimed']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('holds nothing that is no kill point', () => {
    expect(() => {
      writeKillList(join(tmpdir(), 'never-written'), ['outbox.nothing']);
    }).toThrow(RangeError);
  });
});

describe('a kill point', () => {
  test('is an event, a count and a signal, the last two with defaults', () => {
    expect(parseKillPoint('inbox.committed')).toEqual({ event: 'inbox.committed', nth: 1, signal: 'SIGKILL' });
    expect(parseKillPoint('inbox.committed:3:SIGTERM')).toEqual({
      event: 'inbox.committed',
      nth: 3,
      signal: 'SIGTERM',
    });
  });

  test.each([
    'inbox.comitted',
    'inbox.committed:0',
    'inbox.committed:x',
    'inbox.committed:1:SIGFOO',
    'inbox.committed:1:SIGKILL:2',
  ])('is refused when it is %s: a test that kills nowhere would pass', (text) => {
    expect(() => parseKillPoint(text)).toThrow(RangeError);
  });

  test('is checked by killAt as well', () => {
    expect(() => killAt('outbox.nothing' as 'outbox.marked')).toThrow('no event is called "outbox.nothing"');
  });
});
