import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { writeKillList } from 'replaysafe-crashkit';
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { operationKey } from '../../src/client/index.js';
import { type EventName } from '../../src/events.js';
import { migrate } from '../../src/migrate/index.js';
import { createTasks, taskKind, type RequestInput, type Task } from '../../src/tasks/index.js';

const TASKS = 5;
const program = fileURLToPath(new URL('../programs/task-service.ts', import.meta.url));
const kinds = { send: taskKind<RequestInput>() };

/** Somebody else's system: it carries out each key once, and remembers what arrived under it. */
class Provider {
  readonly #server: Server;
  readonly arrivals = new Map<string, string[]>();
  readonly #held: ServerResponse[] = [];
  /** The answer to an arrival, the count of arrivals under its key given; `hold` gives none. */
  answer: (nth: number) => number | 'hold' = () => 200;

  constructor() {
    this.#server = createServer((request, response) => {
      void buffer(request).then((body) => {
        const key = String(request.headers['idempotency-key']);
        const bodies = this.arrivals.get(key) ?? [];
        this.arrivals.set(key, [...bodies, body.toString()]);
        const status = this.answer(bodies.length + 1);
        if (status === 'hold') this.#held.push(response);
        else response.writeHead(status).end('{}');
        this.#server.emit('arrival');
      });
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async untilHeld(count: number): Promise<void> {
    while (this.#held.length < count) await once(this.#server, 'arrival');
  }

  clear(): void {
    for (const response of this.#held.splice(0)) response.destroy();
    this.arrivals.clear();
    this.answer = () => 200;
  }

  close(): void {
    this.clear();
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const provider = new Provider();
const folder = mkdtempSync(join(tmpdir(), 'replaysafe-tasks-'));
const list = join(folder, 'kill');
const running = new Set<ChildProcess>();
let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  await provider.listen();
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url, max: 2 });
  pool.on('error', () => undefined);
  await migrate(fromPg(pool));
});
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  provider.close();
  await pool.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  provider.clear();
  writeKillList(list, []);
  await pool.query('truncate replaysafe.task');
});

interface Service {
  readonly child: ChildProcess;
  /** It hears signals from then on. */
  readonly ready: Promise<unknown>;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Where this process is struck: at the first event of that name. */
function start(event?: EventName, signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Service {
  writeKillList(list, event === undefined ? [] : [`${event}:1:${signal}`]);
  const config = JSON.stringify({ databaseUrl: database.url, provider: provider.address });
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--import', 'replaysafe-crashkit/preload', program, config],
    { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, REPLAYSAFE_KILL_LIST: list } },
  );
  running.add(child);
  const ended = once(child, 'close').then(([code, by]) => {
    running.delete(child);
    return { code: code as number | null, signal: by as NodeJS.Signals | null };
  });
  return { child, ready: once(child.stdout, 'data'), ended };
}

const tasks = () => createTasks({ sql: fromPg(pool), kinds });
const keys = Array.from({ length: TASKS }, (_, n) => operationKey('receipt', n));

async function enqueueAll(): Promise<void> {
  await fromPg(pool).transaction(async (tx) => {
    for (const [n, key] of keys.entries()) {
      const input = { method: 'POST', path: '/receipts', body: JSON.stringify({ n }) } as const;
      await tasks().enqueue(tx, { kind: 'send', key, input });
    }
  });
}

/** Runs a service that nobody strikes until all tasks have ended, and stops it. */
async function finish(): Promise<readonly Task[]> {
  const service = start();
  const open = async () => (await tasks().list()).filter(({ status }) => status === 'PENDING' || status === 'RUNNING');
  await expect.poll(open, { timeout: 20_000, interval: 20 }).toEqual([]);
  await service.ready;
  service.child.kill('SIGTERM');
  expect(await service.ended).toEqual({ code: 0, signal: null });
  return tasks().list();
}

/** Everything was carried out, under one key and with one body each. */
function expectOneEffectEach(): void {
  expect([...provider.arrivals.keys()].sort()).toEqual([...keys].sort());
  for (const bodies of provider.arrivals.values()) expect(new Set(bodies).size).toBe(1);
}

describe.each(['SIGKILL', 'SIGTERM'] as const)(
  '%s: no task is lost, none changes its key or its bytes, when',
  (signal) => {
    const struck = async ({ ended }: Service): Promise<void> => {
      const { code, signal: by } = await ended;
      if (signal === 'SIGKILL') expect(by).toBe('SIGKILL');
      else expect([0, 128 + 15]).toContain(code);
    };

    test.each(['task.claimed', 'task.succeeded'] as const)('the worker is struck at %s', async (event) => {
      await enqueueAll();
      await struck(start(event, signal));
      expect((await finish()).map(({ status }) => status)).toEqual(keys.map(() => 'SUCCEEDED'));
      expectOneEffectEach();
    });

    test('the worker is struck at task.failed', async () => {
      provider.answer = (nth) => (nth <= 2 ? 500 : 200);
      await enqueueAll();
      await struck(start('task.failed', signal));
      expect((await finish()).map(({ status }) => status)).toEqual(keys.map(() => 'SUCCEEDED'));
      expectOneEffectEach();
    });

    test('the worker is struck at task.given-up, and the tasks are redriven', async () => {
      provider.answer = () => 422;
      await enqueueAll();
      await struck(start('task.given-up', signal));
      expect((await finish()).map(({ status }) => status)).toEqual(keys.map(() => 'FAILED'));
      provider.answer = () => 200;
      expect(await tasks().redrive({ kind: 'send' })).toHaveLength(TASKS);
      expect((await finish()).map(({ status }) => status)).toEqual(keys.map(() => 'SUCCEEDED'));
      expectOneEffectEach();
    });

    test('the worker is struck at task.released, in its stop', async () => {
      provider.answer = () => 'hold';
      await enqueueAll();
      const service = start('task.released', signal);
      await provider.untilHeld(TASKS);
      service.child.kill('SIGTERM');
      const { code, signal: by } = await service.ended;
      if (signal === 'SIGKILL') expect(by).toBe('SIGKILL');
      // The handlers had to be cut at the deadline, or the second SIGTERM came before that.
      else expect([124, 128 + 15]).toContain(code);
      expect(await tasks().list()).toEqual(
        keys.map(() => expect.objectContaining({ status: 'PENDING', attempts: 0, failures: 0 }) as unknown),
      );
      provider.answer = () => 200;
      expect((await finish()).map(({ status }) => status)).toEqual(keys.map(() => 'SUCCEEDED'));
      expectOneEffectEach();
    });

    test('the worker is struck at task.recovered, with the claims of a dead one', async () => {
      await enqueueAll();
      expect(await start('task.claimed').ended).toMatchObject({ signal: 'SIGKILL' });
      await struck(start('task.recovered', signal));
      const ended = await finish();
      expect(ended.map(({ status }) => status)).toEqual(keys.map(() => 'SUCCEEDED'));
      expect(ended.every(({ attempts }) => attempts >= 2)).toBe(true);
      expectOneEffectEach();
    });
  },
);
