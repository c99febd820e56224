import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { createDatabase, createTopics, startFaultProxy, type TestDatabase } from '@replaysafe/test-services';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { type ShutdownReport } from '../../src/lifecycle/index.js';
import { migrate } from '../../src/migrate/index.js';
import { createOutbox } from '../../src/outbox/index.js';
import { type HandoverConfig, type Part } from '../programs/handover-service.js';

/** `graceMs` of the service: what an orchestrator would wait before it kills. */
const GRACE_MS = 6_000;
const program = fileURLToPath(new URL('../programs/handover-service.ts', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'replaysafe-handover-'));
const running = new Set<ChildProcess>();
let database: TestDatabase;
let pool: pg.Pool;
let topic: string;

beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url, max: 4 });
  pool.on('error', () => undefined);
  await migrate(fromPg(pool));
  await pool.query('create table effect (source text not null, name text not null)');
});
afterAll(async () => {
  await pool.end();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  topic = `handover-${randomBytes(6).toString('hex')}`;
  await createTopics(inject('kafkaBrokers'), [{ topic }]);
  await pool.query('truncate effect, replaysafe.outbox_event');
});
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

interface Service {
  readonly address: string;
  kill(signal: NodeJS.Signals): void;
  marked(mark: string): Promise<void>;
  /** How it ended, and what it wrote about that. */
  ended(): Promise<{ code: number | null; signal: NodeJS.Signals | null; report: ShutdownReport }>;
}

let started = 0;
async function start(hangs: readonly Part[] = [], databaseUrl = database.url): Promise<Service> {
  const reportFile = join(folder, `report-${started++}`);
  const config: HandoverConfig = {
    databaseUrl,
    brokers: inject('kafkaBrokers'),
    sessionMs: inject('kafkaOwn') ? 1_500 : 6_000,
    topic,
    hangs,
    leaseMs: 2_000,
    reportFile,
  };
  const child = spawn(process.execPath, ['--import', 'tsx', program, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  const closed = once(child, 'close').then(([code, signal]) => {
    running.delete(child);
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  const marks = new Map<string, { port?: number }>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    const { mark, ...fields } = JSON.parse(line) as { mark: string; port?: number };
    marks.set(mark, fields);
    lines.emit(mark);
  });
  const marked = async (mark: string): Promise<void> => {
    if (!marks.has(mark)) await Promise.race([once(lines, mark), closed.then(fail(`ended before "${mark}"`))]);
  };
  await marked('up');
  return {
    address: `http://127.0.0.1:${marks.get('up')!.port!}`,
    kill: (signal) => child.kill(signal),
    marked,
    ended: async () => ({ ...(await closed), report: JSON.parse(readFileSync(reportFile, 'utf8')) as ShutdownReport }),
  };
}

const fail = (message: string) => (): never => {
  throw new Error(message);
};
const place = (service: Service, key: string): Promise<Response> =>
  fetch(`${service.address}/`, { method: 'POST', headers: { 'idempotency-key': key }, body: '{}' });
const effects = async (source: string): Promise<number> =>
  (await pool.query('select from effect where source = $1', [source])).rowCount ?? 0;
const rows = async () =>
  (await pool.query('select status, attempts from replaysafe.outbox_event order by seq')).rows as unknown[];
const overran = (report: ShutdownReport): string[] =>
  report.steps.filter(({ outcome }) => outcome === 'forced' || outcome === 'abandoned').map(({ name }) => name);

/** An event that nobody has to publish first. */
async function deliver(): Promise<void> {
  const producer = new kafkajs.Kafka({
    brokers: inject('kafkaBrokers').split(','),
    logLevel: kafkajs.logLevel.NOTHING,
  }).producer();
  await producer.connect();
  await producer.send({ topic, messages: [{ value: '{}', headers: { 'event-id': 'e-1', 'event-type': 'Placed' } }] });
  await producer.disconnect();
}
const enqueue = (): Promise<unknown> =>
  fromPg(pool).transaction((tx) =>
    createOutbox({ sql: fromPg(pool) }).enqueue(tx, { topic, type: 'Placed', id: crypto.randomUUID(), payload: {} }),
  );

async function stopped(service: Service): Promise<ShutdownReport> {
  service.kill('SIGTERM');
  const { code, signal, report } = await service.ended();
  expect({ code, signal }).toEqual({ code: 124, signal: null });
  expect(report.durationMs).toBeLessThan(GRACE_MS);
  return report;
}

/** The next instance does what is left, and ends well. */
async function finish(work: (service: Service) => Promise<void>): Promise<void> {
  const next = await start();
  await work(next);
  next.kill('SIGTERM');
  const { code, report } = await next.ended();
  expect(overran(report)).toEqual([]);
  expect(code).toBe(0);
}

describe('R-SHUT-1, R-SHUT-CFG-1: a stop ends within its budget with 124, names what hung, and hands over what it held:', () => {
  test('R-SHUT-DB-2: a request handler: its transaction is rolled back, and the key can be used again at once', async () => {
    const service = await start(['handler']);
    const answer = place(service, 'key-1');
    await service.marked('answering');
    expect(overran(await stopped(service))).toEqual(['http']);
    // At its deadline the transaction was rolled back, and the client is told so, not cut off.
    expect((await answer).status).toBe(503);
    expect(await effects('handler')).toBe(0);
    await finish(async (next) => {
      expect((await place(next, 'key-1')).status).toBe(201);
    });
    expect(await effects('handler')).toBe(1);
  });

  test('R-SHUT-SCHED-1: a worker that hears no signal', async () => {
    const service = await start(['worker']);
    await service.marked('working');
    expect(overran(await stopped(service))).toEqual(['worker']);
  });

  test('R-SHUT-KFK-1: a consumer’s handler: nothing of its event is committed, and the next one applies it once', async () => {
    const service = await start(['consumer']);
    await deliver();
    await service.marked('handling');
    expect(overran(await stopped(service))).toHaveLength(1);
    expect(await effects('consumer')).toBe(0);
    await finish(async () => {
      await expect.poll(() => effects('consumer'), { timeout: 20_000, interval: 50 }).toBe(1);
    });
    expect(await effects('consumer')).toBe(1);
  });

  test('R-SHUT-SCHED-3: a publish: the claim is given back at once, and the try is not counted', async () => {
    const service = await start(['relay']);
    await enqueue();
    await service.marked('publishing');
    expect(overran(await stopped(service))).toEqual(['relay']);
    expect(await rows()).toEqual([{ status: 'PENDING', attempts: 0 }]);
    await finish(async () => {
      await expect.poll(rows, { timeout: 20_000, interval: 50 }).toEqual([{ status: 'PUBLISHED', attempts: 1 }]);
    });
  });

  test.each(['producer', 'pool', 'hook'] as const)('%s: what comes behind it is closed all the same', async (part) => {
    const service = await start([part]);
    const report = await stopped(service);
    expect(overran(report)).toEqual([part]);
    expect(report.steps.map(({ name }) => name)).toEqual(expect.arrayContaining(['producer', 'pool']));
  });

  test('all of them together', async () => {
    const service = await start(['handler', 'worker', 'consumer', 'relay', 'producer', 'pool', 'hook']);
    await deliver();
    await enqueue();
    const answer = place(service, 'key-2');
    await Promise.all(['working', 'handling', 'publishing', 'answering'].map((mark) => service.marked(mark)));
    const report = await stopped(service);
    expect((await answer).status).toBe(503);
    expect(overran(report)).toEqual(expect.arrayContaining(['http', 'worker', 'relay', 'producer', 'pool', 'hook']));
    expect(overran(report)).toHaveLength(7);
    expect(await rows()).toEqual([{ status: 'PENDING', attempts: 0 }]);
    await finish(async (next) => {
      expect((await place(next, 'key-2')).status).toBe(201);
      await expect.poll(() => effects('consumer'), { timeout: 20_000, interval: 50 }).toBeGreaterThanOrEqual(1);
      await expect
        .poll(rows, { timeout: 20_000, interval: 50 })
        .toEqual([expect.objectContaining({ status: 'PUBLISHED' }), expect.objectContaining({ status: 'PUBLISHED' })]);
    });
    expect(await effects('handler')).toBe(1);
  });
});

test('where the database itself hangs, the stop ends in time all the same, and the claim comes back with its lease', async () => {
  const { hostname, port } = new URL(database.url);
  const proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
  try {
    const service = await start(['relay'], proxy.through(database.url));
    await enqueue();
    await service.marked('publishing');
    proxy.drop();
    const report = await stopped(service);
    expect(overran(report)).toContain('relay');
    expect(await rows()).toEqual([{ status: 'PUBLISHING', attempts: 1 }]);
    await finish(async () => {
      await expect.poll(rows, { timeout: 20_000, interval: 50 }).toEqual([{ status: 'PUBLISHED', attempts: 2 }]);
    });
  } finally {
    await proxy.stop();
  }
});
