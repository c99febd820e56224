import { expect, test } from 'vitest';
import { storm } from './storm.js';

test('a storm of faults and of callers who give up: one key, one body, three arrivals at most, the truth, all slots back', async () => {
  const report = await storm(400, 42);
  expect(report.violations).toEqual([]);
  // It was a storm, and most got through it.
  expect(report.arrivals).toBeGreaterThan(400);
  expect(report.ends.answered).toBeGreaterThan(200);
  expect(report.ends.RS_CLIENT_OUTCOME_UNKNOWN).toBeGreaterThan(0);
});
