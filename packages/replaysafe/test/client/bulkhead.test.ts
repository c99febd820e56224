import { expect, test } from 'vitest';
import { Bulkhead } from '../../src/client/bulkhead.js';

test('R-RES-BH: lets so many run, so many wait, and refuses the rest', () => {
  const bulkhead = new Bulkhead<string>({ concurrent: 2, queue: 1 });
  expect(['a', 'b', 'c', 'd'].map((name) => bulkhead.enter(name))).toEqual(['run', 'run', 'wait', 'full']);
  expect([bulkhead.running, bulkhead.waiting]).toEqual([2, 1]);
});

test('a slot that is given back goes to whoever has waited longest', () => {
  const bulkhead = new Bulkhead<string>({ concurrent: 1, queue: 9 });
  for (const name of ['a', 'b', 'c', 'd']) bulkhead.enter(name);
  bulkhead.withdraw('b');
  expect(bulkhead.leave()).toBe('c');
  expect(bulkhead.running).toBe(1);
  expect(bulkhead.enter('e')).toBe('wait');
  expect([bulkhead.leave(), bulkhead.leave(), bulkhead.leave()]).toEqual(['d', 'e', undefined]);
  expect(bulkhead.running).toBe(0);
  expect(bulkhead.enter('f')).toBe('run');
});
