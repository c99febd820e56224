import { describe, expect, test } from 'vitest';
import { planChaos, type PlannedKill } from '../../src/demo/plan.js';
import { SeededRandom } from '../../src/demo/seeded-random.js';
import { weatherFor } from '../../src/demo/weather.js';

const plan = (seed: number, gapMs = 3_000, forMs = 45_000) =>
  planChaos(new SeededRandom(seed), weatherFor(undefined), forMs, gapMs);

const sigkillsOfBilling = (kills: readonly PlannedKill[]) =>
  kills.filter(({ service, signal }) => service === 'billing' && signal === 'SIGKILL').map(({ atMs }) => atMs);

describe('the plan of a run', () => {
  test('is the same for the same seed, another for another', () => {
    expect(plan(7)).toEqual(plan(7));
    expect(plan(7)).not.toEqual(plan(8));
  });

  test('leaves the consumer group time between two SIGKILLs of billing', () => {
    for (let seed = 0; seed < 50; seed++) {
      const at = sigkillsOfBilling(plan(seed, 8_000, 120_000).kills);
      const gaps = at.slice(1).map((ms, index) => ms - (at[index] ?? 0));
      expect(Math.min(Infinity, ...gaps)).toBeGreaterThanOrEqual(8_000);
    }
  });

  test('kills orders and billing by SIGKILL and SIGTERM within the default time, whatever the seed', () => {
    for (let seed = 0; seed < 50; seed++) {
      const { kills } = plan(seed);
      const signals = new Set(kills.map(({ signal }) => signal));
      const services = new Set(kills.map(({ service }) => service));
      expect(signals.size).toBe(2);
      expect([...services]).toEqual(expect.arrayContaining(['orders', 'billing']));
    }
  });

  test('ends every spell of faults before the run ends', () => {
    for (let seed = 0; seed < 50; seed++) {
      const { faults } = plan(seed);
      expect(faults.at(-1)?.faults).toEqual({ slowMs: 0, fail503: 0, dropAfterWork: 0 });
      expect(faults.at(-1)?.atMs).toBeLessThanOrEqual(45_000);
    }
  });
});

describe('a seeded generator', () => {
  test('stays between 0 and 1 and spreads', () => {
    const random = new SeededRandom(1);
    const numbers = Array.from({ length: 10_000 }, () => random.next());
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...numbers)).toBeLessThan(1);
    expect(numbers.reduce((sum, number) => sum + number, 0) / numbers.length).toBeCloseTo(0.5, 1);
  });

  test('never picks what weighs nothing', () => {
    const random = new SeededRandom(2);
    const picked = new Set(Array.from({ length: 1_000 }, () => random.weighted({ never: 0, often: 3, seldom: 1 })));
    expect([...picked].sort()).toEqual(['often', 'seldom']);
  });
});
