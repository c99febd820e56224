import { describe, expect, it } from 'vitest';
import { judgeLease, type LeaseRow } from '../../src/lifecycle/lease-states.js';

const free: LeaseRow = { owner: null, epoch: 3n, failures: 0, heldMs: null, dueInMs: null, slotMs: null };
const held: LeaseRow = { ...free, owner: 'other', heldMs: 9_000 };
const every = (everyMs: number) => ({ kind: 'interval', everyMs }) as const;
const slot = (slotMs?: number) => ({ kind: 'slot', slotMs }) as const;

describe('what a pod may do about its turn', () => {
  it.each([
    ['no row yet', undefined, every(100), { kind: 'take' }],
    ['free, never run', free, every(100), { kind: 'take' }],
    ['free, due', { ...free, dueInMs: 0 }, every(100), { kind: 'take' }],
    ['free, not due', { ...free, dueInMs: 70 }, every(100), { kind: 'wait', waitMs: 70 }],
    ['held: looks again at the pace of the runs', held, every(2_000), { kind: 'wait', waitMs: 2_000 }],
    ['held: but not all the time', held, every(1), { kind: 'wait', waitMs: 1_000 }],
    ['held: nor later than the lease runs out', held, every(60_000), { kind: 'wait', waitMs: 9_000 }],
    ['run out', { ...held, heldMs: 0 }, every(100), { kind: 'take' }],
    ['run out, whatever was due', { ...held, heldMs: -5, dueInMs: 900 }, every(100), { kind: 'take' }],
    ['our own, from a claim whose answer was lost', { ...held, owner: 'me' }, every(100), { kind: 'take' }],

    ['schedule: no row yet', undefined, slot(50), { kind: 'take' }],
    ['schedule: nothing to go on with', undefined, slot(), { kind: 'done' }],
    ['schedule: never run', free, slot(50), { kind: 'take' }],
    ['schedule: an earlier moment was run', { ...free, slotMs: 40 }, slot(50), { kind: 'take' }],
    ['schedule: this moment was run', { ...free, slotMs: 49.9999 }, slot(50), { kind: 'done' }],
    ['schedule: a later one was', { ...free, slotMs: 60 }, slot(50), { kind: 'done' }],
    ['schedule: being run', { ...held, slotMs: 50 }, slot(50), { kind: 'wait', waitMs: 9_000 }],
    ['schedule: begun and not ended', { ...held, heldMs: 0, slotMs: 50 }, slot(50), { kind: 'take' }],
    ['schedule: begun and not ended, for whoever starts', { ...held, heldMs: 0, slotMs: 50 }, slot(), { kind: 'take' }],
    ['schedule: ended, for whoever starts', { ...free, slotMs: 50 }, slot(), { kind: 'done' }],
  ] as const)('%s', (_, row, turn, verdict) => {
    expect(judgeLease(row, turn, 'me')).toEqual(verdict);
  });
});
