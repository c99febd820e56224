import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createTaskWorker, type RunningTask } from '../../src/tasks/index.js';
import { kinds, nextEvent, TestTasks } from './support.js';

let db: TestTasks;
beforeAll(async () => {
  db = await TestTasks.open();
});
afterAll(() => db.close());
beforeEach(() => db.clear());

const failing = (message: string) => () => {
  throw new Error(message);
};
const hang = () => new Promise<never>(() => undefined);
const ended = (id: string) => nextEvent('task.succeeded', ({ ids }) => ids.includes(id));

describe('a task', () => {
  test('is tried with the same key and the same bytes until it succeeds, and its result can be read', async () => {
    const seen: string[] = [];
    const id = await db.enqueue({ key: 'k-9', input: { n: 9 } });
    const done = ended(id);
    db.start({
      receipt: ({ key, bytes, input, attempt, keyFor }) => {
        seen.push(`${key} ${Buffer.from(bytes).toString()} ${keyFor('mail')}`);
        if (attempt < 3) throw new Error('not yet');
        return { sent: input.n };
      },
    });
    await done;
    expect(seen).toHaveLength(3);
    expect(new Set(seen).size).toBe(1);
    expect(await db.tasks.get(id)).toMatchObject({
      status: 'SUCCEEDED',
      attempts: 3,
      failures: 2,
      result: { sent: 9 },
      lastError: undefined,
    });
  });

  test('is FAILED after its failures, with an event, and stands there until it is redriven with the same key', async () => {
    const id = await db.enqueue();
    const gaveUp = nextEvent('task.given-up');
    const worker = db.start({ receipt: failing('no mail server') });
    expect(await gaveUp).toMatchObject({ id, kind: 'receipt', reason: 'max-failures', error: 'no mail server' });
    expect(await db.tasks.get(id)).toMatchObject({ status: 'FAILED', failures: 3, lastError: 'no mail server' });
    await worker.stop();

    expect(await db.tasks.redrive({ ids: [id, 'no-id'] })).toEqual([id]);
    expect(await db.tasks.redrive({ kind: 'receipt' })).toEqual([]);
    const done = ended(id);
    db.start({ receipt: ({ key }) => ({ sent: key.length }) });
    await done;
    expect(await db.tasks.get(id)).toMatchObject({ status: 'SUCCEEDED', key: 'k-1', result: { sent: 3 } });
  });

  test('is given up on at once where the error says that it will not become better', async () => {
    const id = await db.enqueue();
    const gaveUp = nextEvent('task.given-up');
    db.start({
      receipt: () => {
        throw Object.assign(new Error('no such customer'), { code: 'RS_CLIENT_ANSWER_REFUSED', retryable: false });
      },
    });
    expect(await gaveUp).toMatchObject({ id, reason: 'not-retryable' });
    expect((await db.tasks.get(id))?.attempts).toBe(1);
  });

  test('that is cancelled while it runs is not tried again', async () => {
    const id = await db.enqueue();
    let fail: (error: Error) => void = () => undefined;
    const begun = nextEvent('task.claimed');
    db.start({ receipt: () => new Promise((_, reject) => (fail = reject)) });
    await begun;
    expect(await db.tasks.cancel(id)).toBe('after-try');
    const settled = nextEvent('task.failed');
    fail(new Error('broken'));
    await settled;
    expect(await db.tasks.get(id)).toMatchObject({ status: 'CANCELLED', lastError: 'broken' });
  });

  test('that does not end in its time is told so, and keeps its slot until it does', async () => {
    const id = await db.enqueue({ kind: 'quick' });
    const told: unknown[] = [];
    const failed = nextEvent('task.failed');
    db.start({
      quick: ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            told.push(signal.reason);
            reject(signal.reason as Error);
          });
        }),
    });
    expect(await failed).toMatchObject({ id, error: expect.stringContaining('RS_TASK_TIMEOUT') as string });
    expect(told[0]).toMatchObject({ code: 'RS_TASK_TIMEOUT' });
  });

  test('is not run before its moment', async () => {
    const later = await db.enqueue({ key: 'k-later', availableAt: new Date(Date.now() + 3_600_000) });
    const now = await db.enqueue({ key: 'k-now' });
    const done = ended(now);
    db.start({ receipt: () => ({ sent: 1 }) });
    await done;
    expect(await db.tasks.get(later)).toMatchObject({ status: 'PENDING', attempts: 0 });
  });

  test('whose result has no JSON form is done all the same: it is not repeated', async () => {
    const id = await db.enqueue({ kind: 'other' });
    let runs = 0;
    const done = Promise.race([ended(id), nextEvent('task.failed')]);
    db.start({ other: () => ({ amount: BigInt(++runs) }) });
    await done;
    expect(await db.tasks.get(id)).toMatchObject({
      status: 'SUCCEEDED',
      result: { omitted: 'the result has no JSON form' },
    });
    expect(runs).toBe(1);
  });

  test('is not tried any more when the other side may have forgotten its key (adcp-client#569)', async () => {
    const id = await db.enqueue({ kind: 'remembered' });
    let runs = 0;
    const failed = nextEvent('task.failed');
    const first = db.start({
      remembered: () => {
        runs++;
        throw new Error('no answer');
      },
    });
    await failed;
    await first.stop(AbortSignal.abort());
    await db.pool.query(`update replaysafe.task set first_attempt_at = first_attempt_at - interval '1 day',
      next_attempt_at = clock_timestamp()`);
    const gaveUp = nextEvent('task.given-up');
    const before = runs;
    db.start({ remembered: () => runs++ });
    expect(await gaveUp).toMatchObject({ id, reason: 'key-window' });
    expect(runs).toBe(before);
    expect(await db.tasks.get(id)).toMatchObject({ status: 'FAILED', key: 'k-1' });
  });

  test('whose result is too long is done all the same', async () => {
    const id = await db.enqueue({ kind: 'other' });
    const done = ended(id);
    db.start({ other: () => 'x'.repeat(1_000_000) });
    await done;
    expect((await db.tasks.get(id))?.result).toEqual({ omitted: expect.stringContaining('more than') as string });
  });
});

describe('complete', () => {
  const completing = (after: () => void) => async (task: RunningTask) => {
    await db.sql.transaction(async (tx) => {
      await tx.handle.query('insert into effect values ($1)', [task.key]);
      await task.complete(tx, 'with its rows');
      after();
    });
  };
  beforeAll(() => db.pool.query('create table effect (key text primary key)'));
  beforeEach(() => db.pool.query('truncate effect'));

  test('ends the task in the transaction of its effect', async () => {
    const id = await db.enqueue({ kind: 'other' });
    const done = ended(id);
    db.start({ other: completing(() => undefined) });
    await done;
    expect(await db.tasks.get(id)).toMatchObject({ status: 'SUCCEEDED', result: 'with its rows' });
    expect((await db.pool.query('select * from effect')).rowCount).toBe(1);
  });

  test('is rolled back with it', async () => {
    const id = await db.enqueue({ kind: 'other' });
    const failed = nextEvent('task.failed');
    db.start({ other: completing(failing('after all')) }, { backoff: { baseMs: 60_000, capMs: 60_000 } });
    expect(await failed).toMatchObject({ id, error: 'after all' });
    expect(await db.tasks.get(id)).toMatchObject({ status: 'PENDING', failures: 1 });
    expect((await db.pool.query('select * from effect')).rowCount).toBe(0);
  });

  test('P10: a worker that was frozen past its lease cannot commit the effect', async () => {
    const id = await db.enqueue({ kind: 'other' });
    const refused = new Promise<unknown>((resolve) => {
      db.start({
        other: async (task) => {
          await db.pool.query('update replaysafe.task set claim_token = gen_random_uuid() where id = $1', [task.id]);
          await completing(() => undefined)(task).catch((error: unknown) => {
            resolve(error);
            throw error;
          });
        },
      });
    });
    expect(await refused).toMatchObject({ code: 'RS_TASK_FENCED' });
    expect((await db.pool.query('select * from effect')).rowCount).toBe(0);
    expect((await db.tasks.get(id))?.status).toBe('RUNNING');
  });
});

describe('many workers', () => {
  test('run each task once, and none more at a time than they may', async () => {
    const TASKS = 120;
    const runs = new Map<string, number>();
    let atOnce = 0;
    let most = 0;
    for (let n = 0; n < TASKS; n++) await db.enqueue({ key: `k-${n}` });
    let left = TASKS;
    const allDone = new Promise<void>((resolve) => {
      const handler = async ({ key }: RunningTask<{ n: number }, { sent: number }>) => {
        most = Math.max(most, ++atOnce);
        await new Promise(setImmediate);
        atOnce--;
        runs.set(key, (runs.get(key) ?? 0) + 1);
        if (--left === 0) resolve();
        return { sent: 1 };
      };
      for (let n = 0; n < 3; n++) db.start({ receipt: handler }, { concurrency: 7 });
    });
    await allDone;
    expect([...runs.values()].filter((count) => count !== 1)).toEqual([]);
    expect(runs.size).toBe(TASKS);
    expect(most).toBeLessThanOrEqual(21);
    expect(most).toBeGreaterThan(3);
  });

  test('leave kinds that they have no handler for to others', async () => {
    const other = await db.enqueue({ kind: 'other' });
    const receipt = await db.enqueue();
    const done = ended(receipt);
    db.start({ receipt: () => ({ sent: 1 }) });
    await done;
    expect((await db.tasks.get(other))?.status).toBe('PENDING');
  });
});

describe('a stop', () => {
  test('R-SHUT-SCHED-1: claims nothing more and waits for what runs', async () => {
    const id = await db.enqueue();
    let finish: (result: { sent: number }) => void = () => undefined;
    const claimed = nextEvent('task.claimed');
    const worker = db.start({ receipt: () => new Promise((resolve) => (finish = resolve)) });
    await claimed;
    const stopped = worker.stop();
    const late = await db.enqueue({ key: 'k-2' });
    finish({ sent: 1 });
    await stopped;
    expect((await db.tasks.get(id))?.status).toBe('SUCCEEDED');
    expect(await db.tasks.get(late)).toMatchObject({ status: 'PENDING', attempts: 0 });
  });

  test('gives tasks back at its deadline, without a burnt attempt, even if the handler does not listen', async () => {
    const id = await db.enqueue();
    const claimed = nextEvent('task.claimed');
    let signal: AbortSignal | undefined;
    const worker = db.start({
      receipt: (task) => {
        signal = task.signal;
        return hang();
      },
    });
    await claimed;
    const deadline = new AbortController();
    const stopped = worker.stop(deadline.signal);
    deadline.abort();
    await stopped;
    expect(signal?.aborted).toBe(true);
    expect(await db.tasks.get(id)).toMatchObject({ status: 'PENDING', attempts: 0, failures: 0 });
  });

  test('ends in time where the database does not answer and the deadline is over already', async () => {
    const sql = { ...db.sql, transaction: hang };
    const worker = createTaskWorker({ sql, kinds, handlers: { other: hang } });
    worker.start();
    const beganAtMs = performance.now();
    await worker.stop(AbortSignal.abort());
    expect(performance.now() - beganAtMs).toBeLessThan(4_000);
  });

  test('twice, before start, and through the signals of a lifecycle, is harmless', async () => {
    const stopping = new AbortController();
    const signals = { stopping: stopping.signal, deadline: new AbortController().signal, budgetMs: 1_000 };
    const worker = db.start({ receipt: () => ({ sent: 1 }) }, { signals });
    stopping.abort();
    await Promise.all([worker.stop(), worker.stop()]);
    const idle = createTaskWorker({ sql: db.sql, kinds, handlers: { other: hang } });
    await idle.stop();
    idle.start();
    const id = await db.enqueue({ kind: 'other' });
    expect((await db.tasks.get(id))?.status).toBe('PENDING');
  });
});
