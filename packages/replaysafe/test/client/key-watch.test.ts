import { expect, test } from 'vitest';
import { KeyWatch } from '../../src/client/key-watch.js';

const post = (key: string | undefined, body: string) => ({ method: 'POST', path: '/charges', body, key });

test('unbounded memory: a million keys leave as many behind as it may remember', () => {
  const watch = new KeyWatch(100);
  for (let n = 0; n < 10_000; n++) watch.see(post(`k-${n}`, '{}'), {});
  expect(watch.remembered).toBe(100);
  expect(watch.see(post('k-9999', 'other'), {})).toBe('two-requests-with-one-key');
  expect(watch.see(post('k-1', 'other'), {})).toBeUndefined();
});

test('what is repeated with its own key, and what has none, is fine', () => {
  const watch = new KeyWatch();
  const order = {};
  for (let n = 0; n < 3; n++) expect(watch.see(post('k', '{}'), order)).toBeUndefined();
  expect(watch.see(post(undefined, '{}'), order)).toBeUndefined();
  expect(watch.see(post('other', 'text'), 'text')).toBeUndefined();
  expect(watch.see(post('third', 'text'), 'text')).toBeUndefined();
});
