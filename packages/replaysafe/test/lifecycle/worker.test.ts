import { describe, expect, it } from 'vitest';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { nextDelayMs } from '../../src/lifecycle/worker-timetable.js';
import { onEvent } from '../../src/events.js';
import { createFakeClock } from '../../src/testing/index.js';

const half = { next: () => 0.5 };

function setUp(run: (at: number) => Promise<void>, everyMs = 100) {
  const clock = createFakeClock();
  const lifecycle = createLifecycle({ clock, random: half });
  const runs: number[] = [];
  lifecycle.worker({
    name: 'cleaner',
    everyMs,
    run: () => {
      runs.push(clock.monotonicMs());
      return run(clock.monotonicMs());
    },
  });
  const takes = (ms: number) => new Promise<void>((resolve) => clock.setTimer(ms, resolve));
  return { clock, lifecycle, runs, takes };
}

describe('a worker', () => {
  it('begins when the service has started, and waits from the end of a run to the next', async () => {
    const { clock, lifecycle, runs, takes } = setUp(() => takes(1_000));
    await clock.advance(500);
    expect(runs).toEqual([]);
    lifecycle.started();
    await clock.advance(2_500);
    expect(runs).toEqual([505, 1_605, 2_705]);
  });

  it('begins at once when it is registered while the service runs', async () => {
    const { clock, lifecycle } = setUp(() => Promise.resolve());
    lifecycle.started();
    let ran = false;
    lifecycle.worker({ name: 'late', everyMs: 10, run: () => Promise.resolve(void (ran = true)) });
    await clock.advance(1);
    expect(ran).toBe(true);
  });

  it('R-SHUT-SCHED-1 finishes the run under way, and begins none after the stop', async () => {
    let ended = false;
    const { clock, lifecycle, runs, takes } = setUp(async () => {
      await takes(1_000);
      ended = true;
    });
    lifecycle.started();
    await clock.advance(10);
    const stopping = lifecycle.stop();
    await clock.advance(900);
    expect([ended, lifecycle.state]).toEqual([false, 'draining']);
    await clock.advance(200);
    expect((await stopping).steps).toMatchObject([{ name: 'cleaner', outcome: 'stopped' }]);
    expect([ended, runs.length]).toEqual([true, 1]);
  });

  it('wakes from its pause when the stop begins', async () => {
    const { clock, lifecycle } = setUp(() => Promise.resolve(), 3_600_000);
    lifecycle.started();
    await clock.advance(400_000);
    const stopping = lifecycle.stop();
    await clock.advance(1);
    expect((await stopping).exitCode).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('is not ended by a run that fails; it waits longer each time, and reports it', async () => {
    const events: { worker: string; error: unknown }[] = [];
    const subscription = onEvent('lifecycle.worker-ran', (event) => events.push(event));
    let failing = true;
    const { clock, lifecycle, runs } = setUp(() => {
      if (failing) throw new Error('no connection');
      return Promise.resolve();
    });
    lifecycle.started();
    await clock.advance(800);
    expect(runs).toEqual([5, 205, 605]);
    failing = false;
    await clock.advance(1_000);
    subscription.unsubscribe();
    expect(runs.slice(3, 6)).toEqual([1_405, 1_505, 1_605]);
    expect(events.slice(2, 4)).toMatchObject([
      { worker: 'cleaner', error: new Error('no connection') },
      { error: undefined },
    ]);
  });

  it('spreads its runs by a tenth, and backs off to a minute at most', () => {
    expect(nextDelayMs(1_000, 0, { next: () => 0 })).toBe(900);
    expect(nextDelayMs(1_000, 0, { next: () => 0.999 })).toBeCloseTo(1_100, 0);
    expect(nextDelayMs(1_000, 50, half)).toBe(60_000);
    expect(nextDelayMs(300_000, 3, half)).toBe(300_000);
    expect(nextDelayMs(1, 1, half)).toBe(200);
  });

  it.each([0, -5, 1.5, '10s', undefined])('is refused with everyMs %s', (everyMs) => {
    const lifecycle = createLifecycle();
    expect(() => {
      lifecycle.worker({ name: 'x', everyMs: everyMs as number, run: () => Promise.resolve() });
    }).toThrow(expect.objectContaining({ code: expect.stringMatching(/RS_OPTION_(INVALID|REQUIRED)/) as string }));
  });
});
