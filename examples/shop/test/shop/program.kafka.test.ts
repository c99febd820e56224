import { spawn, type ChildProcess } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, inject, test } from 'vitest';

const program = fileURLToPath(new URL('../../dist/shop/main.js', import.meta.url));
let shell: ChildProcess | undefined;

interface Line {
  readonly orders: readonly string[];
  readonly billing: readonly string[];
  readonly provider: string;
  readonly pids: Readonly<Record<string, number>>;
}

/** As npm does it: a shell that waits for the program. */
async function openShop(...args: string[]): Promise<Line> {
  const command = `"${process.execPath}" "${program}" --json ${args.join(' ')}; true`;
  shell = spawn('sh', ['-c', command], {
    detached: true,
    env: { ...process.env, DATABASE_URL: inject('databaseUrl'), KAFKA_BROKERS: inject('kafkaBrokers') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { value } = (await createInterface(shell.stdout!)[Symbol.asyncIterator]().next()) as { value: string };
  return JSON.parse(value) as Line;
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

afterEach(() => {
  if (shell?.pid !== undefined && isAlive(shell.pid)) process.kill(-shell.pid, 'SIGTERM');
  shell = undefined;
});

describe('npm run shop -- --json', () => {
  test('prints one line when all is ready, and ends with all its services when its parent disappears', async () => {
    const line = await openShop('--orders', '2', '--billing', '2');
    expect(Object.keys(line)).toEqual(['orders', 'billing', 'provider', 'databaseUrl', 'kafkaBrokers', 'pids']);
    expect([line.orders.length, line.billing.length]).toEqual([2, 2]);
    const addresses = [...line.orders, ...line.billing, line.provider];
    expect(Object.keys(line.pids).sort()).toEqual([...addresses].sort());
    for (const address of addresses) expect((await fetch(`${address}/health/ready`)).status).toBe(200);
    // Nobody has said SHOP_FAULTS=1.
    expect((await fetch(`${line.provider}/faults`, { method: 'PUT', body: '{}' })).status).toBe(404);

    shell!.kill('SIGTERM');
    const pids = Object.values(line.pids);
    await expect.poll(() => pids.filter(isAlive), { timeout: 20_000 }).toEqual([]);
  });

  test('ends its services when it is killed itself', async () => {
    const line = await openShop();
    // The shell and the program, not the services: those are in groups of their own.
    process.kill(-shell!.pid!, 'SIGKILL');
    await expect.poll(() => Object.values(line.pids).filter(isAlive), { timeout: 20_000 }).toEqual([]);
  });
});
