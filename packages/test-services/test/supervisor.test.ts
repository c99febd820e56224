import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type ServiceSpec } from '../src/supervisor-messages.js';

it('ends also when its user was gone before it could listen', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'replaysafe-test-'));
  const spec: ServiceSpec = {
    folder,
    prepare: [],
    run: { file: process.execPath, args: ['-e', 'setInterval(() => undefined, 60_000)'] },
    stopSignal: 'SIGTERM',
    crashSignal: 'SIGKILL',
    stopWithinMs: 5_000,
  };
  const supervisor = fork(fileURLToPath(new URL('../dist/supervisor.js', import.meta.url)), [JSON.stringify(spec)], {
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  supervisor.disconnect();
  try {
    expect(await once(supervisor, 'exit')).toEqual([0, null]);
    expect(existsSync(folder)).toBe(false);
  } finally {
    supervisor.kill('SIGTERM');
  }
});
