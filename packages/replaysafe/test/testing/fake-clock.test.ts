import { describe, expect, it } from 'vitest';
import { pause } from '../../src/ports/clock.js';
import { createFakeClock } from '../../src/testing/fake-clock.js';

describe('the fake clock', () => {
  it('fires timers in the order of their moments, and of one moment in the order they were set', async () => {
    const clock = createFakeClock();
    const fired: string[] = [];
    for (const [delay, name] of [
      [20, 'c'],
      [10, 'a'],
      [10, 'b'],
      [31, 'never'],
    ] as const) {
      clock.setTimer(delay, () => fired.push(`${name}@${clock.monotonicMs()}`));
    }
    await clock.advance(30);
    expect(fired).toEqual(['a@10', 'b@10', 'c@20']);
    expect(clock.pendingTimers).toBe(1);
  });

  it('fires timers that are set on the way, also behind a promise', async () => {
    const clock = createFakeClock();
    const seen: number[] = [];
    const loop = async (): Promise<void> => {
      for (let round = 0; round < 3; round++) {
        await pause(clock, 10);
        seen.push(clock.monotonicMs());
      }
    };
    const done = loop();
    await clock.advance(25);
    expect(seen).toEqual([10, 20]);
    await clock.advance(5);
    await done;
    expect(seen).toEqual([10, 20, 30]);
  });

  it('does not fire what was cancelled, and moves both of its times alike', async () => {
    const clock = createFakeClock({ now: 1_000 });
    const timer = clock.setTimer(5, () => {
      throw new Error('cancelled timers do not fire');
    });
    timer.cancel();
    await clock.advance(10);
    expect([clock.now(), clock.monotonicMs()]).toEqual([1_010, 10]);
  });

  it('rejects with what a timer throws', async () => {
    const clock = createFakeClock();
    clock.setTimer(1, () => {
      throw new Error('thrown by a timer');
    });
    await expect(clock.advance(1)).rejects.toThrow('thrown by a timer');
  });
});
