import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterEach, expect, it, vi } from 'vitest';
import { createDatabase, type PostgresService, startPostgres } from '../src/index.js';

// Each test starts a server or two, which takes long on a busy machine.
vi.setConfig({ testTimeout: 90_000 });

const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0)) await end();
});

/** A program, leader of its own process group, that uses a PostgreSQL; with the lines it prints. */
const program = async (): Promise<{
  child: ChildProcess;
  lines: AsyncIterator<string>;
  pid: number;
  folder: string;
}> => {
  const file = fileURLToPath(new URL('./programs/uses-postgres.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', file], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  toEnd.push(() => child.kill('SIGKILL'));
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const first = await lines.next();
  const { pid, data_directory: data } = JSON.parse(String(first.value)) as { pid: number; data_directory: string };
  return { child, lines, pid, folder: dirname(data) };
};

const own = async (): Promise<PostgresService> => {
  const service = await startPostgres({ alwaysOwn: true });
  toEnd.push(() => service.stop());
  return service;
};

const ask = async (url: string, text: string): Promise<unknown[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

it('goes, folder and all, when the program that started it is SIGKILLed', async () => {
  const { child, pid, folder } = await program();
  expect([runs(pid), existsSync(folder)]).toEqual([true, true]);
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
  await vi.waitFor(
    () => {
      expect([runs(pid), existsSync(folder)]).toEqual([false, false]);
    },
    { timeout: 15_000, interval: 50 },
  );
});

it('is not reached by Ctrl-C: the program can use it until it has stopped', async () => {
  const { child, lines, pid, folder } = await program();
  const ended = once(child, 'exit');
  // What a terminal does: SIGINT to the whole foreground group.
  process.kill(-child.pid!, 'SIGINT');
  expect(JSON.parse(String((await lines.next()).value))).toEqual({ answer: 'still here' });
  expect(await ended).toEqual([0, null]);
  expect([runs(pid), existsSync(folder)]).toEqual([false, false]);
});

it('keeps what was committed over a crash, at the same address', async () => {
  const service = await own();
  const database = await createDatabase(service.url);
  await ask(database.url, 'CREATE TABLE note AS SELECT 1 AS id');
  const before = service.pid!;
  await service.crash();
  expect([service.pid, runs(before)]).toEqual([undefined, false]);
  await expect(ask(database.url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await service.start();
  expect(await ask(database.url, 'SELECT id FROM note')).toEqual([{ id: 1 }]);
});

it('runs beside another, each stopped by itself and twice without harm', async () => {
  const [first, second] = await Promise.all([own(), own()]);
  expect(first.url).not.toBe(second.url);
  const [firstPid, secondPid] = [first.pid!, second.pid!];
  await Promise.all([first.stop(), first.stop()]);
  await first.stop();
  expect([runs(firstPid), runs(secondPid)]).toEqual([false, true]);
  expect(await ask(second.url, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

it('has the settings that the library needs, and those of the caller, and syncs unless told otherwise', async () => {
  const safe = await own();
  const show = async (service: PostgresService, name: string): Promise<unknown> =>
    Object.values((await ask(service.url, `SHOW ${name}`))[0] as Record<string, unknown>)[0];
  for (const [name, value] of Object.entries({
    wal_level: 'logical',
    max_connections: '200',
    synchronous_commit: 'on',
    fsync: 'on',
    TimeZone: 'UTC',
    server_encoding: 'UTF8',
  })) {
    expect([name, await show(safe, name)]).toEqual([name, value]);
  }
  const fast = await startPostgres({ alwaysOwn: true, fsync: false, settings: { deadlock_timeout: '123ms' } });
  toEnd.push(() => fast.stop());
  expect([await show(fast, 'fsync'), await show(fast, 'deadlock_timeout')]).toEqual(['off', '123ms']);
});

it('says what the server said when it does not start, and leaves nothing behind', async () => {
  await expect(startPostgres({ alwaysOwn: true, settings: { no_such_setting: 1 } })).rejects.toThrow(
    'unrecognized configuration parameter "no_such_setting"',
  );
});
