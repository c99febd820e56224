import { describe, expect, it } from 'vitest';
import { nextState, TRANSITIONS, type LifecycleInput, type LifecycleState } from '../../src/lifecycle/states.js';

const inputs: readonly LifecycleInput[] = ['started', 'stop-requested', 'users-stopped', 'all-stopped'];
const order: readonly LifecycleState[] = ['starting', 'running', 'draining', 'closing', 'closed'];

describe('lifecycle states', () => {
  it('go through a whole life', () => {
    const passed = inputs.reduce<LifecycleState[]>(
      (states, input) => [...states, nextState(states.at(-1)!, input)],
      ['starting'],
    );
    expect(passed).toEqual(order);
  });

  it('R-SHUT-3 never go back, whatever comes', () => {
    for (const state of order) {
      for (const input of inputs) {
        expect(order.indexOf(nextState(state, input))).toBeGreaterThanOrEqual(order.indexOf(state));
      }
    }
  });

  it('are all reachable', () => {
    const reached = Object.values(TRANSITIONS).flatMap((transitions) => Object.values(transitions));
    expect(new Set(['starting', ...reached])).toEqual(new Set(order));
  });

  it('stop during the start without ever running', () => {
    expect(nextState('starting', 'stop-requested')).toBe('draining');
    expect(nextState('draining', 'started')).toBe('draining');
  });
});
