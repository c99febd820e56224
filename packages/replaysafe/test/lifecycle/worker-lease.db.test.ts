import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { hasCode, ReplaysafeError } from '../../src/errors.js';
import { type Lifecycle } from '../../src/lifecycle/index.js';
import { silentLogger } from '../../src/ports/logger.js';
import { waitForEvent } from '../../src/testing/index.js';
import { counter, gate, LeaseDatabase, startPod, watched, type PodOptions } from './lease-database.js';

let db: LeaseDatabase;
const pods: Lifecycle[] = [];
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
beforeEach(() => db.clear());
afterEach(() => Promise.all(pods.splice(0).map((pod) => pod.stop())));
afterAll(() => db.close());

const start = (options: Omit<PodOptions, 'sql'> & Partial<Pick<PodOptions, 'sql'>>): Lifecycle => {
  const pod = startPod({ sql: db.sql, logger: silentLogger, ...options });
  pods.push(pod);
  return pod;
};

describe('a worker of which one runs over all pods', () => {
  it('is run once by three pods that start together, not three times', async () => {
    const looks = counter();
    const sql = watched(db.sql, (name) => {
      if (name === 'look') looks.tick();
    });
    let runs = 0;
    const ran = waitForEvent('lifecycle.worker-ran');
    for (const everyMs of [60_000, 60_000, 60_000])
      start({
        sql,
        everyMs,
        run: async () => {
          runs++;
        },
      });
    await ran;
    await db.rowThat(({ owner }) => owner === null);
    while (looks.seen < 3) await looks.more(1);
    expect([runs, (await db.row())!.epoch]).toEqual([1, '1']);
  });

  it('keeps the interval over all pods, from the end of a run to the start of the next', async () => {
    const everyMs = 200;
    const runs = counter();
    const spans: { began: number; ended: number }[] = [];
    const now = async (): Promise<number> => {
      const { rows } = await db.pool.query<{ ms: number }>(
        'select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms',
      );
      return rows[0]!.ms;
    };
    const run = async (): Promise<void> => {
      const began = await now();
      spans.push({ began, ended: await now() });
      runs.tick();
    };
    for (let pod = 0; pod < 3; pod++) start({ everyMs, run });
    while (runs.seen < 5) await runs.more(1);
    const pauses = spans.slice(1).map(({ began }, at) => began - spans[at]!.ended);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(everyMs);
  });

  it('R-SHUT-SCHED-1 finishes its run at a stop and gives the lease back at once', async () => {
    const [began, finish] = [gate(), gate()];
    const pod = start({
      run: async ({ lease, stopping }) => {
        began.open();
        await finish.opened;
        // R-SHUT-SCHED-2: the stop has begun, and the critical section commits all the same.
        expect(stopping.aborted).toBe(true);
        await db.sql.transaction(async ({ handle: tx }) => {
          await lease.check(tx);
          await tx.query('insert into effect (epoch) values ($1)', [String(lease.epoch)]);
        });
      },
    });
    await began.opened;
    const stopping = pod.stop();
    finish.open();
    expect((await stopping).exitCode).toBe(0);
    expect(await db.effects()).toEqual(['1']);
    expect(await db.row()).toMatchObject({ owner: null, leased_until: null, failures: 0 });
  });

  it('that never ends is abandoned by name, and the next pod has its lease at once', async () => {
    const began = gate();
    const stuck = start({
      workMs: 300,
      run: async () => {
        began.open();
        await new Promise(() => undefined);
      },
    });
    await began.opened;
    const report = await stuck.stop();
    expect(report.exitCode).toBe(124);
    expect(report.steps).toMatchObject([{ name: 'one-of-all', outcome: 'abandoned' }]);
    expect(await db.row()).toMatchObject({ expired: true });
    const taken = waitForEvent('lifecycle.lease-taken', ({ takenOver }) => takenOver, { timeoutMs: 2_000 });
    start({ run: async () => undefined });
    expect(await taken).toMatchObject({ epoch: 2n });
  });

  it('renews its lease while a run goes on, however often others look', async () => {
    const [began, finish] = [gate(), gate()];
    const looks = counter();
    start({ leaseMs: 300, run: () => (began.open(), finish.opened) });
    await began.opened;
    const first = (await db.row())!.leased_until!;
    const sql = watched(db.sql, (name) => {
      if (name === 'look') looks.tick();
    });
    start({ sql, leaseMs: 300, run: () => Promise.reject(new Error('the lease was not the other’s')) });
    const past = await db.rowThat((row) => row.leased_until!.getTime() > first.getTime() + 600);
    expect(past.epoch).toBe('1');
    expect(looks.seen).toBeGreaterThan(0);
    finish.open();
    expect(await db.rowThat(({ owner }) => owner === null)).toMatchObject({ epoch: '1', failures: 0 });
  });

  it('hears of a lost lease, and its transaction is refused (P10)', async () => {
    const began = gate();
    let outcome: unknown;
    const lost = waitForEvent('lifecycle.lease-lost');
    const ran = waitForEvent('lifecycle.worker-ran');
    start({
      leaseMs: 300,
      run: async ({ lease }) => {
        began.open();
        await new Promise((resolve) => {
          lease.lost.addEventListener('abort', resolve, { once: true });
        });
        outcome = lease.lost.reason;
        await db.sql.transaction(async (tx) => {
          await tx.query('insert into effect (epoch) values (1)');
          await lease.check(tx);
        });
      },
    });
    await began.opened;
    await db.pool.query(
      `update replaysafe.worker_lease set owner = 'another', epoch = 2, leased_until = now() + interval '1 hour'`,
    );
    expect(await lost).toEqual({ worker: 'one-of-all', epoch: 1n });
    expect(hasCode((await ran).error, 'RS_LIFECYCLE_LEASE_LOST')).toBe(true);
    expect(hasCode(outcome, 'RS_LIFECYCLE_LEASE_LOST')).toBe(true);
    expect(await db.effects()).toEqual([]);
    expect(await db.row()).toMatchObject({ owner: 'another', epoch: '2' });
  });

  it('hears of it also when the database does not answer until the lease has run out', async () => {
    let down = false;
    const sql = watched(db.sql, () => undefined);
    const transaction: typeof sql.transaction = (fn, options) =>
      down ? Promise.reject(new ReplaysafeError('RS_SQL_UNAVAILABLE')) : sql.transaction(fn, options);
    const lost = waitForEvent('lifecycle.lease-lost');
    start({
      sql: { ...sql, transaction },
      leaseMs: 300,
      run: async ({ lease }) => {
        down = true;
        await new Promise((resolve) => {
          lease.lost.addEventListener('abort', resolve, { once: true });
        });
      },
    });
    expect(await lost).toMatchObject({ epoch: 1n });
    down = false;
  });

  it('backs off while the database is down, and ends neither then nor without its table', async () => {
    const codes: unknown[] = [];
    const logger = {
      ...silentLogger,
      warn: (fields: object) => {
        if ('err' in fields && fields.err instanceof ReplaysafeError) codes.push(fields.err.code);
      },
    };
    let refusals = 3;
    const transaction: typeof db.sql.transaction = (fn, options) =>
      refusals-- > 0 ? Promise.reject(new ReplaysafeError('RS_SQL_UNAVAILABLE')) : db.sql.transaction(fn, options);
    await db.pool.query('alter table replaysafe.worker_lease rename to hidden');
    const ran = waitForEvent('lifecycle.worker-ran');
    start({ sql: { ...db.sql, transaction }, everyMs: 1, logger, run: async () => undefined });
    while (!codes.includes('RS_MIGRATE_PENDING')) await new Promise((resolve) => setImmediate(resolve));
    await db.pool.query('alter table replaysafe.hidden rename to worker_lease');
    expect((await ran).error).toBeUndefined();
    expect(codes.slice(0, 4)).toEqual([...Array<string>(3).fill('RS_SQL_UNAVAILABLE'), 'RS_MIGRATE_PENDING']);
  });

  it('that fails waits longer, on every pod', async () => {
    const run = (): Promise<void> => Promise.reject(new Error('no'));
    start({ everyMs: 1_000, run });
    const row = await db.rowThat(({ failures, owner }) => failures === 1 && owner === null);
    expect(row.not_before!.getTime() - row.last_finished_at!.getTime()).toBeCloseTo(2_000, -1);
  });

  it('waits an interval before the very first run where it shall, and not again for each pod that starts', async () => {
    const everyMs = 3_600_000;
    let runs = 0;
    const run = async (): Promise<void> => {
      runs++;
    };
    start({ everyMs, firstRun: 'later', run });
    const { not_before: due } = await db.rowThat(() => true);
    expect(due!.getTime()).toBeGreaterThan(Date.now() + everyMs - 60_000);
    const looked = counter();
    start({ sql: watched(db.sql, looked.tick), everyMs, firstRun: 'later', run });
    while (looked.seen < 2) await looked.more(1);
    expect((await db.row())!.not_before).toEqual(due);
    expect(runs).toBe(0);
  });

  it('runs each moment of a schedule once over three pods', async () => {
    const everyMs = 150;
    const cron = (from: Date): Date => new Date((Math.floor(from.getTime() / everyMs) + 1) * everyMs);
    const runs = counter();
    const slots: number[] = [];
    const run = async (): Promise<void> => {
      slots.push((await db.row())!.slot!.getTime());
      runs.tick();
    };
    for (let pod = 0; pod < 3; pod++) start({ cron, run });
    while (runs.seen < 6) await runs.more(1);
    expect(new Set(slots).size).toBe(slots.length);
    expect(slots.every((at) => at % everyMs === 0)).toBe(true);
  });
});
