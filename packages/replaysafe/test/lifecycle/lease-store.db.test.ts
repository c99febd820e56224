import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LeaseStore } from '../../src/lifecycle/lease-store.js';
import { type Turn } from '../../src/lifecycle/lease-states.js';
import { leaseSql } from '../../src/lifecycle/sql.js';
import { systemClock } from '../../src/ports/clock.js';
import { LeaseDatabase } from './lease-database.js';

let db: LeaseDatabase;
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
beforeEach(() => db.clear());
afterAll(() => db.close());

const HOURLY: Turn = { kind: 'interval', everyMs: 3_600_000 };
const slot = (at: number): Turn => ({ kind: 'slot', slotMs: Date.UTC(2026, 0, 1, at) });
const store = (owner: string, leaseMs = 60_000) =>
  new LeaseStore({ sql: db.sql, schema: 'replaysafe', clock: systemClock, name: 'one', owner, leaseMs });
const expire = () =>
  db.pool.query(`update replaysafe.worker_lease set leased_until = clock_timestamp() - interval '1 second'`);

describe('the lease of a worker', () => {
  it('is one pod’s at a time, and the next one’s with a higher epoch', async () => {
    const [a, b] = [store('a'), store('b')];
    expect(await a.claim(HOURLY)).toEqual({ kind: 'claimed', epoch: 1n, failures: 0, takenFrom: undefined });
    const refused = await b.claim(HOURLY);
    expect(refused).toMatchObject({ kind: 'wait' });
    expect((refused as { waitMs: number }).waitMs).toBeGreaterThan(50_000);
    expect(await a.release(1n, 0, undefined)).toBe(true);
    // Measured over all pods: an hour from the end of a's run.
    const due = (await b.claim(HOURLY)) as { kind: string; waitMs: number };
    expect(due.kind).toBe('wait');
    expect(due.waitMs).toBeGreaterThan(3_590_000);
    await db.pool.query(`update replaysafe.worker_lease set last_finished_at = last_finished_at - interval '1 hour'`);
    expect(await b.claim(HOURLY)).toMatchObject({ kind: 'claimed', epoch: 2n, takenFrom: undefined });
  });

  it('is taken by exactly one of twenty pods that ask at once, with a row and without', async () => {
    for (const expected of [1n, 2n]) {
      const claims = await Promise.all(Array.from({ length: 20 }, (_, pod) => store(`pod-${pod}`).claim(HOURLY)));
      expect(claims.filter(({ kind }) => kind === 'claimed')).toMatchObject([{ epoch: expected }]);
      await expire();
    }
  });

  it('is measured from the end of the last run, and after failures from the back-off, on whichever pod', async () => {
    const [a, b] = [store('a'), store('b')];
    await a.claim({ kind: 'interval', everyMs: 1 });
    await a.release(1n, 3, 500_000);
    const wait = (await b.claim({ kind: 'interval', everyMs: 1 })) as { waitMs: number };
    expect(wait.waitMs).toBeGreaterThan(490_000);
    await db.pool.query('update replaysafe.worker_lease set not_before = null');
    await db.rowThat(({ last_finished_at: at }) => at!.getTime() < Date.now() - 5);
    expect(await b.claim({ kind: 'interval', everyMs: 1 })).toMatchObject({ kind: 'claimed', failures: 3 });
  });

  it('runs each moment of a schedule once, also for a pod whose clock is behind', async () => {
    const [a, b] = [store('a'), store('b')];
    expect(await a.claim(slot(3))).toMatchObject({ kind: 'claimed' });
    await a.release(1n, 0, undefined);
    expect(await b.claim(slot(3))).toEqual({ kind: 'done' });
    expect(await b.claim(slot(2))).toEqual({ kind: 'done' });
    expect(await b.claim(slot(4))).toMatchObject({ kind: 'claimed', epoch: 2n });
  });

  it('hands a run on that was begun and not ended, for the moment it was for, and also to a pod that starts later', async () => {
    const [a, b] = [store('a'), store('b')];
    expect(await b.claim({ kind: 'slot', slotMs: undefined })).toEqual({ kind: 'done' });
    await a.claim(slot(3));
    expect(await b.claim({ kind: 'slot', slotMs: undefined })).toMatchObject({ kind: 'wait' });
    await expire();
    expect(await b.claim({ kind: 'slot', slotMs: undefined })).toMatchObject({ kind: 'claimed', takenFrom: 'a' });
    await b.release(2n, 0, undefined);
    expect(await a.claim(slot(3))).toEqual({ kind: 'done' });
    expect(await a.claim({ kind: 'slot', slotMs: undefined })).toEqual({ kind: 'done' });
  });

  it('is found again by the pod whose claim was committed and never answered', async () => {
    await store('a').claim(HOURLY);
    expect(await store('a').claim(HOURLY)).toMatchObject({ kind: 'claimed', epoch: 2n });
  });

  it('P10: is neither renewed, released nor given back by the pod that has lost it', async () => {
    const [a, b] = [store('a'), store('b')];
    await a.claim(HOURLY);
    await expire();
    expect(await b.claim(HOURLY)).toMatchObject({ kind: 'claimed', epoch: 2n, takenFrom: 'a' });
    const before = await db.row();
    expect([await a.renew(1n, 1_000), await a.release(1n, 0, undefined), await a.surrender(1n)]).toEqual([
      false,
      false,
      false,
    ]);
    expect(await db.row()).toEqual(before);
  });
});

describe('P10: the check of a run', () => {
  it('fails when another pod has taken over, also where that is not committed yet', async () => {
    const a = store('a');
    await a.claim(HOURLY);
    await expire();
    const rival = await db.pool.connect();
    try {
      await rival.query('begin');
      await rival.query(leaseSql('replaysafe').take, ['one', 'b', 60_000, null, '1']);
      const verdict = db.sql.transaction((tx) => a.check(tx.handle, 1n));
      await db.somebodyWaits();
      await rival.query('commit');
      expect(await verdict).toBe(false);
    } finally {
      rival.release();
    }
    expect(await db.sql.transaction((tx) => a.check(tx, 1n))).toBe(false);
  });

  it('holds a takeover off until its transaction has ended, and lets the renewal pass', async () => {
    const [a, b] = [store('a'), store('b')];
    await a.claim(HOURLY);
    let taken: Promise<unknown> | undefined;
    await db.sql.transaction(async (tx) => {
      expect(await a.check(tx, 1n)).toBe(true);
      expect(await a.renew(1n, 1_000)).toBe(true);
      await expire();
      taken = b.claim(HOURLY);
      await db.somebodyWaits();
      await tx.query('insert into effect (epoch) values (1)');
    });
    // Committed while the lease was a's: b begins only now, and sees it.
    expect(await db.effects()).toEqual(['1']);
    expect(await taken).toMatchObject({ kind: 'claimed', epoch: 2n });
  });

  it('lets a claim wait a bounded time for a run that does not end its transaction', async () => {
    const [a, b] = [store('a'), store('b')];
    await a.claim(HOURLY);
    await expire();
    await db.sql.transaction(async (tx) => {
      await a.check(tx, 1n);
      expect(await b.claim(HOURLY)).toMatchObject({ kind: 'wait' });
    });
    expect(await b.claim(HOURLY)).toMatchObject({ kind: 'claimed', epoch: 2n });
  });

  it('knows its own row again, where the row was deleted and made anew', async () => {
    const [a, b] = [store('a'), store('b')];
    await a.claim(HOURLY);
    await db.clear();
    expect(await b.claim(HOURLY)).toMatchObject({ epoch: 1n });
    expect(await db.sql.transaction((tx) => a.check(tx, 1n))).toBe(false);
  });
});

it.each([
  `insert into replaysafe.worker_lease (name, epoch) values ('x', 0)`,
  `insert into replaysafe.worker_lease (name, epoch, owner) values ('x', 1, 'a')`,
  `insert into replaysafe.worker_lease (name, epoch, leased_until) values ('x', 1, now())`,
  `insert into replaysafe.worker_lease (name, epoch, failures) values ('x', 1, -1)`,
])('the table refuses %s', async (statement) => {
  await expect(db.pool.query(statement)).rejects.toMatchObject({ code: '23514' });
});
