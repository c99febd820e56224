import { describe, expect, test } from 'vitest';
import { FaultBox, NO_FAULTS, parseFaults } from '../../src/provider/faults.js';

describe('the faults of the provider', () => {
  test('are off where nothing is said of them', () => {
    expect(parseFaults({})).toEqual(NO_FAULTS);
    expect(parseFaults({ slowMs: 20 })).toEqual({ slowMs: 20, fail503: 0, dropAfterWork: 0 });
  });

  test('take true and false for always and never', () => {
    expect(parseFaults({ fail503: true, dropAfterWork: false })).toEqual({ slowMs: 0, fail503: 1, dropAfterWork: 0 });
  });

  test.each([
    [null, 'must be a JSON object'],
    [{ slow: 1 }, '"slow" is none of slowMs, fail503, dropAfterWork'],
    [{ slowMs: -1 }, 'slowMs must be a number of at least 0'],
    [{ slowMs: 100_000 }, 'slowMs must be at most 60000'],
    [{ fail503: 1.5 }, 'fail503 must be a share up to 1, or a whole number'],
    [{ dropAfterWork: 'yes' }, 'dropAfterWork must be a number'],
  ])('are refused with a reason: %j', (body, reason) => {
    expect(parseFaults(body)).toContain(reason);
  });

  test('hit every request, none, or the next few', () => {
    const box = new FaultBox();
    const hits = (fail503: number) => {
      box.set({ ...NO_FAULTS, fail503 });
      return Array.from({ length: 4 }, () => box.hits('fail503'));
    };
    expect(hits(1)).toEqual([true, true, true, true]);
    expect(hits(0)).toEqual([false, false, false, false]);
    expect(hits(3)).toEqual([true, true, true, false]);
  });
});
