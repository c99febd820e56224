import { describe, expect, test } from 'vitest';
import { Waiters } from '../../src/idempotency/waiters.js';
import { createFakeClock } from '../../src/testing/index.js';

const setUp = (waitMs: number) => {
  const clock = createFakeClock();
  const stop = new AbortController();
  const signals = { stopping: stop.signal, deadline: new AbortController().signal, budgetMs: 0 };
  const waiters = new Waiters({ waitMs, clock, random: { next: () => 0.999 }, signals });
  return { clock, stop, waiters };
};

describe('those who wait for the first request of their key', () => {
  test('at most four of a key; a place is free again when one leaves', () => {
    const { waiters } = setUp(1_000);
    const four = Array.from({ length: 4 }, () => waiters.enter('k'));
    expect(four.every(Boolean)).toBe(true);
    expect(waiters.enter('k')).toBeUndefined();
    expect(waiters.enter('other')).toBeDefined();
    four[0]?.leave();
    expect(waiters.enter('k')).toBeDefined();
    expect(waiters.enter('k')).toBeUndefined();
  });

  test('they look again at growing intervals, until the wait is used up', async () => {
    const { clock, waiters } = setUp(1_000);
    const waiter = waiters.enter('k')!;
    const looks: number[] = [];
    const done = (async () => {
      while (await waiter.pause()) looks.push(Math.round(waiter.waitedMs));
    })();
    await clock.advance(1_000);
    await done;
    expect(looks).toEqual([20, 60, 140, 300, 500, 700, 900, 1_000]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('0 does not wait', async () => {
    expect(await setUp(0).waiters.enter('k')!.pause()).toBe(false);
  });

  test('R-SHUT-HTTP-1: stopping sends them away in the same tick, and lets nobody wait any more', async () => {
    const { clock, stop, waiters } = setUp(10_000);
    const waiting = waiters.enter('k')!.pause();
    expect(clock.pendingTimers).toBe(1);
    stop.abort();
    expect(await waiting).toBe(false);
    expect(clock.pendingTimers).toBe(0);
    expect(await waiters.enter('k')!.pause()).toBe(false);
    expect(waiters.stopping).toBe(true);
  });
});
