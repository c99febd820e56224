import { describe, expect, it } from 'vitest';
import { emit } from '../../src/events.js';
import { waitForEvent } from '../../src/testing/wait-for-event.js';

describe('waitForEvent', () => {
  it('gives the payload of the first event that is accepted', async () => {
    const waiting = waitForEvent('migrate.applied', ({ name }) => name.startsWith('b'));
    for (const name of ['a1', 'b1', 'b2']) emit('migrate.applied', { name });
    expect(await waiting).toEqual({ name: 'b1' });
  });

  it('listens from the moment of the call, and no longer than it needs', async () => {
    let looks = 0;
    emit('migrate.applied', { name: 'before' });
    const waiting = waitForEvent('migrate.applied', () => ++looks > 0);
    emit('migrate.applied', { name: 'first' });
    emit('migrate.applied', { name: 'second' });
    expect(await waiting).toEqual({ name: 'first' });
    expect(looks).toBe(1);
  });

  it('rejects at its time-out and says how many others there were', async () => {
    const waiting = waitForEvent('migrate.applied', () => false, { timeoutMs: 20 });
    emit('migrate.applied', { name: 'other' });
    await expect(waiting).rejects.toThrow('no event migrate.applied in 20 ms that was waited for (1 others');
  });

  it('rejects with what its predicate throws, which the publisher of the event does not see', async () => {
    const waiting = waitForEvent('migrate.applied', () => {
      throw new Error('thrown by a predicate');
    });
    emit('migrate.applied', { name: 'any' });
    await expect(waiting).rejects.toThrow('thrown by a predicate');
  });
});
