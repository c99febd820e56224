import { describe, expect, test } from 'vitest';
import { FIRST_PACE, nextPace, type IterationEnd, type Pace } from '../../src/retry/pace.js';

const OPTIONS = { pollBusyMs: 10, pollIdleMs: 1_000, baseMs: 200, capMs: 60_000, random: { next: () => 0.999_999 } };

const paces = (ends: readonly IterationEnd[], options = OPTIONS): Pace[] => {
  let pace = FIRST_PACE;
  return ends.map((end) => (pace = nextPace(pace, end, options)));
};
const waits = (ends: readonly IterationEnd[], options = OPTIONS) => paces(ends, options).map(({ waitMs }) => waitMs);

test('polls ever less often while there is nothing to do, up to pollIdleMs', () => {
  expect(waits(Array.from({ length: 9 }, () => 'empty'))).toEqual([10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]);
});

test('goes on at once after a full batch, and soon after a partial one', () => {
  expect(waits(['empty', 'empty', 'full', 'full', 'partial', 'empty'])).toEqual([10, 20, 0, 0, 10, 20]);
});

test('a hint wakes it while it is idle, never while it backs off', () => {
  expect(paces(['empty', 'partial', 'refused', 'errored']).map(({ wakeable }) => wakeable)).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

describe.each(['refused', 'errored'] as const)('%s', (end) => {
  test('backs off with a cap of its own, so that the end of an outage is noticed', () => {
    expect(waits(Array.from({ length: 7 }, () => end))).toEqual([200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
  });

  test('never spins, even where jitter says 0', () => {
    expect(waits([end, end], { ...OPTIONS, random: { next: () => 0 } })).toEqual([10, 10]);
  });
});

test('probes with few rows until the broker takes one, also while all of them are backing off', () => {
  expect(paces(['refused', 'empty', 'errored', 'refused', 'partial']).map(({ probing }) => probing)).toEqual([
    true,
    true,
    true,
    true,
    false,
  ]);
});
