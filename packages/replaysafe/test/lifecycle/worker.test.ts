import { describe, expect, it } from 'vitest';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { nextDelayMs } from '../../src/lifecycle/worker-timetable.js';
import { onEvent } from '../../src/events.js';
import { pause } from '../../src/ports/clock.js';
import { silentLogger } from '../../src/ports/logger.js';
import { createFakeClock } from '../../src/testing/index.js';

const half = { next: () => 0.5 };

function setUp(run: (at: number) => Promise<void>, everyMs = 100) {
  const clock = createFakeClock();
  const lifecycle = createLifecycle({ clock, random: half, logger: silentLogger });
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

  it('R-SHUT-SCHED-2 gives a critical section its own deadline: the stop does not interrupt it', async () => {
    const seen: string[] = [];
    const clock = createFakeClock();
    const lifecycle = createLifecycle({ clock, random: half, logger: silentLogger });
    lifecycle.worker({
      name: 'transfer',
      everyMs: 100,
      run: async ({ stopping, deadline }) => {
        stopping.addEventListener('abort', () => seen.push('stopping'), { once: true });
        await pause(clock, 5_000, deadline);
        seen.push(deadline.aborted ? 'cut' : 'whole');
      },
    });
    lifecycle.started();
    await clock.advance(10);
    const stopping = lifecycle.stop();
    await clock.advance(6_000);
    expect(seen).toEqual(['stopping', 'whole']);
    expect((await stopping).steps).toMatchObject([{ name: 'transfer', outcome: 'stopped' }]);
  });

  it('R-SHUT-SCHED-2 hears of the deadline before it is given up on', async () => {
    const clock = createFakeClock();
    const lifecycle = createLifecycle({ clock, random: half, logger: silentLogger, workMs: 4_000 });
    let gaveBack = false;
    lifecycle.worker({
      name: 'transfer',
      everyMs: 100,
      run: async ({ deadline }) => {
        await pause(clock, 60_000, deadline);
        gaveBack = deadline.aborted;
      },
    });
    lifecycle.started();
    await clock.advance(10);
    const stopping = lifecycle.stop();
    await clock.advance(4_000);
    expect((await stopping).steps).toMatchObject([{ name: 'transfer', outcome: 'forced' }]);
    expect(gaveBack).toBe(true);
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

  it('begins an interval later where that is asked for, and otherwise within a second however long the interval', async () => {
    const clock = createFakeClock();
    const lifecycle = createLifecycle({ clock, random: half });
    const runs: string[] = [];
    const job = (name: string) => ({ name, everyMs: 3_600_000, run: async () => void runs.push(name) });
    lifecycle.worker(job('later'), { firstRun: 'later' });
    lifecycle.worker(job('now'));
    lifecycle.started();
    await clock.advance(1_000);
    expect(runs).toEqual(['now']);
    await clock.advance(3_600_000);
    expect(runs).toEqual(['now', 'later', 'now']);
  });

  it('overlaps its runs only where that is asked for, never more than so many, and all are awaited', async () => {
    const clock = createFakeClock();
    const lifecycle = createLifecycle({ clock, random: half, logger: silentLogger });
    const starts: number[] = [];
    let [now, most] = [0, 0];
    const run = async (): Promise<void> => {
      starts.push(clock.monotonicMs());
      most = Math.max(most, ++now);
      await new Promise<void>((resolve) => clock.setTimer(1_000, resolve));
      now--;
    };
    lifecycle.worker({ name: 'feeds', everyMs: 100, run }, { overlap: 3 });
    lifecycle.started();
    await clock.advance(1_100);
    expect(starts).toEqual([5, 105, 205]);
    await clock.advance(1_000);
    expect(most).toBe(3);
    const stopping = lifecycle.stop();
    await clock.advance(1);
    expect([now > 0, lifecycle.state]).toEqual([true, 'draining']);
    await clock.advance(2_000);
    expect((await stopping).exitCode).toBe(0);
    expect(now).toBe(0);
  });

  it('tells the run’s logger who writes', async () => {
    const lines: object[] = [];
    const clock = createFakeClock();
    const logger = {
      ...silentLogger,
      warn: (fields: object, message: string) => void lines.push({ ...fields, message }),
    };
    const lifecycle = createLifecycle({ clock, random: half, logger });
    lifecycle.worker({
      name: 'cleaner',
      everyMs: 100,
      run: async (context) => {
        context.logger.warn({ rows: 3 }, 'odd');
      },
    });
    lifecycle.started();
    await clock.advance(10);
    expect(lines).toEqual([{ worker: 'cleaner', rows: 3, message: 'odd' }]);
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
