import { expect, test } from 'vitest';
import { Deadlines, type Ending } from '../../src/client/deadlines.js';
import { createFakeClock } from '../../src/testing/index.js';

function setUp() {
  const clock = createFakeClock();
  const deadlines = new Deadlines(clock);
  const expired: number[] = [];
  const after = (ms: number): Ending => {
    const at = clock.monotonicMs() + ms;
    const ending: Ending = {
      at,
      slot: -1,
      expire: () => {
        expect(clock.monotonicMs()).toBe(at);
        expired.push(at);
      },
    };
    deadlines.add(ending);
    return ending;
  };
  return { clock, deadlines, expired, after };
}

test('each ends at its moment, in order, whatever the order they came in', async () => {
  const { clock, expired, after } = setUp();
  for (const ms of [50, 10, 40, 20, 30, 20]) after(ms);
  await clock.advance(35);
  expect(expired).toEqual([10, 20, 20, 30]);
  after(1);
  await clock.advance(100);
  expect(expired).toEqual([10, 20, 20, 30, 36, 40, 50]);
});

test('what is removed does not end, and the others keep their order', async () => {
  const { clock, deadlines, expired, after } = setUp();
  // A fixed but unordered sequence that takes elements from the middle of the heap.
  const endings = Array.from({ length: 200 }, (_, n) => after(((n * 73) % 211) + 1));
  const removed = endings.filter((_, n) => n % 3 === 0);
  for (const ending of removed) deadlines.remove(ending);
  for (const ending of removed) deadlines.remove(ending);
  await clock.advance(300);
  const left = endings.filter((_, n) => n % 3 !== 0).map(({ at }) => at);
  expect(expired).toEqual(left.sort((a, b) => a - b));
  expect(deadlines.pending()).toEqual([]);
});

test('a thousand calls that end in time cost one timer', async () => {
  const { clock, deadlines, expired, after } = setUp();
  for (let n = 0; n < 1_000; n++) {
    deadlines.remove(after(30_000));
    expect(clock.pendingTimers).toBe(1);
    await Promise.resolve();
  }
  deadlines.close();
  expect(clock.pendingTimers).toBe(0);
  expect(expired).toEqual([]);
});

test('what ends may begin something new', async () => {
  const { clock, deadlines } = setUp();
  const ended: number[] = [];
  const chain = (left: number): void => {
    deadlines.add({
      at: clock.monotonicMs() + 10,
      slot: -1,
      expire: () => {
        ended.push(clock.monotonicMs());
        if (left > 1) chain(left - 1);
      },
    });
  };
  chain(3);
  await clock.advance(100);
  expect(ended).toEqual([10, 20, 30]);
});
