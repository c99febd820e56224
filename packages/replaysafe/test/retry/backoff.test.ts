import { expect, test } from 'vitest';
import { backoffDelay } from '../../src/retry/backoff.js';

const longest = { next: () => 1 - Number.EPSILON };
const shortest = { next: () => 0 };

test('the bound doubles with each attempt up to the cap, and never overflows', () => {
  const bounds = [1, 2, 3, 4, 5, 1_000, 1e9].map((attempt) =>
    backoffDelay({ attempt, baseMs: 100, capMs: 1_000, random: longest }),
  );
  expect(bounds).toEqual([100, 200, 400, 800, 1_000, 1_000, 1_000]);
});

test('full jitter: any wait from nothing to the bound', () => {
  expect(backoffDelay({ attempt: 4, baseMs: 100, capMs: 1_000, random: shortest })).toBe(0);
  expect(backoffDelay({ attempt: 4, baseMs: 100, capMs: 1_000, random: { next: () => 0.5 } })).toBe(400);
});
