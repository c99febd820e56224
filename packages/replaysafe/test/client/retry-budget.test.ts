import { expect, test } from 'vitest';
import { RetryBudget } from '../../src/client/retry-budget.js';

test('R-RES-RE-X4: retries on credit first, then one for every five calls that went well', () => {
  const budget = new RetryBudget(2);
  expect([budget.spend(), budget.spend(), budget.spend()]).toEqual([true, true, false]);
  for (let call = 0; call < 4; call++) budget.earn();
  expect(budget.spend()).toBe(false);
  budget.earn();
  expect([budget.spend(), budget.spend()]).toEqual([true, false]);
});

test('a long calm does not save up for a storm', () => {
  const budget = new RetryBudget(1);
  for (let call = 0; call < 1_000; call++) budget.earn();
  expect([budget.spend(), budget.spend()]).toEqual([true, false]);
});

test('without a budget nothing is repeated', () => {
  const budget = new RetryBudget(0);
  budget.earn();
  expect(budget.spend()).toBe(false);
});
