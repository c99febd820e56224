import { describe, expect, test } from 'vitest';
import { OUTBOX_STATES, settle, TRANSITIONS, type FailurePolicy } from '../../src/outbox/states.js';
import { storableText } from '../../src/ports/storable-text.js';
import type { PublishOutcome } from '../../src/ports/broker.js';

const LAST = 0.999_999;
const POLICY: FailurePolicy = {
  baseMs: 100,
  capMs: 1_000,
  maxFailures: 0,
  topicGraceMs: 60_000,
  random: { next: () => LAST },
};
const FRESH = { failures: 0, refusedMs: undefined };
const no = (status: Exclude<PublishOutcome['status'], 'stored'>): PublishOutcome => ({ status, reason: 'because' });

test('a stored event is published, also when the publish was interrupted', () => {
  expect(settle(FRESH, { status: 'stored' }, false, POLICY)).toEqual({ kind: 'published' });
  expect(settle(FRESH, { status: 'stored' }, true, POLICY)).toEqual({ kind: 'published' });
});

test('a rejected event is dead at once', () => {
  expect(settle(FRESH, no('rejected'), false, POLICY)).toMatchObject({
    kind: 'dead',
    reason: 'rejected',
    error: 'rejected: because',
  });
});

describe.each(['retriable', 'unknown'] as const)('%s', (status) => {
  test('waits, twice as long at most after each failure, up to the cap', () => {
    const delays = [0, 1, 2, 3, 4, 1_000].map((failures) => settle({ ...FRESH, failures }, no(status), false, POLICY));
    expect(delays.map((settled) => settled.kind === 'failed' && settled.delayMs)).toEqual([
      100, 200, 400, 800, 1_000, 1_000,
    ]);
  });

  test('waits anything down to nothing (full jitter)', () => {
    const policy = { ...POLICY, random: { next: () => 0 } };
    expect(settle({ ...FRESH, failures: 9 }, no(status), false, policy)).toMatchObject({ kind: 'failed', delayMs: 0 });
  });

  test('is never given up on by default, and after maxFailures where that is set', () => {
    expect(settle({ ...FRESH, failures: 1_000_000 }, no(status), false, POLICY).kind).toBe('failed');
    const policy = { ...POLICY, maxFailures: 3 };
    expect(settle({ ...FRESH, failures: 1 }, no(status), false, policy).kind).toBe('failed');
    expect(settle({ ...FRESH, failures: 2 }, no(status), false, policy)).toMatchObject({
      kind: 'dead',
      reason: 'max-failures',
    });
  });

  test('interrupted by the end of the process is no failure', () => {
    const policy = { ...POLICY, maxFailures: 1 };
    expect(settle(FRESH, no(status), true, policy)).toEqual({ kind: 'released' });
  });
});

test('a refused topic has its time of grace, then the event is dead', () => {
  const refused = (refusedMs: number | undefined) =>
    settle({ failures: 5, refusedMs }, no('topic-refused'), false, POLICY);
  expect(refused(undefined)).toMatchObject({ kind: 'failed', outcome: 'topic-refused', refused: true });
  expect(refused(59_999)).toMatchObject({ kind: 'failed' });
  expect(refused(60_000)).toMatchObject({ kind: 'dead', reason: 'topic-refused' });
});

test('another failure in between ends the run of refusals', () => {
  expect(settle({ failures: 5, refusedMs: 90_000 }, no('retriable'), false, POLICY)).toMatchObject({
    kind: 'failed',
    refused: false,
  });
});

test('nothing leaves PUBLISHED or DEAD by the hand of a relay', () => {
  const left = new Set(TRANSITIONS.map(({ from }) => from));
  expect(OUTBOX_STATES.filter((state) => !(left as Set<string>).has(state))).toEqual(['PUBLISHED', 'DEAD']);
});

test('an error text of a megabyte, with NUL and half a surrogate pair, can be stored', () => {
  const text = storableText(`a\0b\ud800c${'\u{1F600}'.repeat(500_000)}`);
  expect(text.length).toBe(2_000);
  expect(text).not.toMatch(/\0|\p{Surrogate}/u);
  expect(text.startsWith('a\uFFFDb\uFFFDc')).toBe(true);
  // The cut went through a pair.
  expect(text.endsWith('\uFFFD')).toBe(true);
});
