import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { expect, test } from 'vitest';
import { emit, EVENTS, onEvent } from '../src/events.js';

test('an event is received in the tick in which it is emitted, under its own name only', () => {
  const seen: string[] = [];
  const listener = onEvent('migrate.applied', ({ name }) => seen.push(name));
  emit('migrate.applied', { name: 'a' });
  emit('outbox.fenced', { relay: 'r', count: 1 });
  expect(seen).toEqual(['a']);
  listener.unsubscribe();
  emit('migrate.applied', { name: 'b' });
  expect(seen).toEqual(['a']);
});

test('any subscriber of the diagnostics channel receives it, without this package', () => {
  const seen: unknown[] = [];
  const receive = (message: unknown) => seen.push(message);
  subscribe('replaysafe:migrate.applied', receive);
  emit('migrate.applied', { name: 'a' });
  unsubscribe('replaysafe:migrate.applied', receive);
  expect(seen).toEqual([{ name: 'a' }]);
});

test('each event is named by its room and what has happened, and says when', () => {
  for (const [name, { when }] of Object.entries(EVENTS)) {
    expect(name).toMatch(/^[a-z]+\.[a-z]+(-[a-z]+)*$/);
    expect(when).not.toBe('');
  }
});
