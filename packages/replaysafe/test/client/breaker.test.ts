import { expect, test } from 'vitest';
import { Breaker, REFUSED, type BreakerOptions } from '../../src/client/breaker.js';
import { createFakeClock } from '../../src/testing/index.js';

const OPTIONS: BreakerOptions = { window: 50, failurePercent: 50, minimumTries: 20, openMs: 30_000, probes: 3 };

function setUp(options: Partial<BreakerOptions> = {}) {
  const clock = createFakeClock();
  const changes: string[] = [];
  const breaker = new Breaker(
    { ...OPTIONS, ...options },
    () => clock.monotonicMs(),
    (from, to) => changes.push(`${from} -> ${to}`),
  );
  const tries = (count: number, verdict: 'well' | 'failed' | 'ignored') => {
    for (let n = 0; n < count; n++) breaker.settle(breaker.admit(true), verdict);
  };
  return { clock, breaker, changes, tries };
}

test('R-RES-CB: opens when half of the last 50 tries failed', () => {
  const { breaker, tries } = setUp();
  tries(30, 'well');
  tries(20, 'failed');
  expect(breaker.state).toBe('closed');
  // The window slides: each further failure drops one that went well.
  tries(4, 'failed');
  expect(breaker.state).toBe('closed');
  tries(1, 'failed');
  expect(breaker.state).toBe('open');
  expect(breaker.admit(true)).toBe(REFUSED);
});

test('R-RES-CB: opens at 30 of a hundred where money moves', () => {
  const { breaker, tries } = setUp({ failurePercent: 30 });
  tries(35, 'well');
  tries(14, 'failed');
  expect(breaker.state).toBe('closed');
  tries(1, 'failed');
  expect(breaker.state).toBe('open');
});

test('a few failures of a client that has just begun do not open it', () => {
  const { breaker, tries } = setUp();
  tries(19, 'failed');
  expect(breaker.state).toBe('closed');
  tries(1, 'failed');
  expect(breaker.state).toBe('open');
});

test('what says nothing about the system is not counted', () => {
  const { breaker, tries } = setUp();
  tries(19, 'failed');
  tries(100, 'ignored');
  expect(breaker.state).toBe('closed');
  tries(1, 'failed');
  expect(breaker.state).toBe('open');
});

test('R-RES-CB: half-open after 30 s, three probes that went well close it', async () => {
  const { clock, breaker, changes, tries } = setUp();
  tries(20, 'failed');
  await clock.advance(29_999);
  expect(breaker.admit(true)).toBe(REFUSED);
  await clock.advance(1);
  const probes = [breaker.admit(true), breaker.admit(true), breaker.admit(true)];
  expect(probes).not.toContain(REFUSED);
  expect(breaker.admit(true)).toBe(REFUSED);
  for (const probe of probes) breaker.settle(probe, 'well');
  expect(breaker.admit(true)).not.toBe(REFUSED);
  expect(changes).toEqual(['closed -> open', 'open -> half-open', 'half-open -> closed']);
});

test('one failed probe opens it for another 30 s', async () => {
  const { clock, breaker, tries } = setUp();
  tries(20, 'failed');
  await clock.advance(30_000);
  tries(2, 'well');
  tries(1, 'failed');
  expect(breaker.state).toBe('open');
  await clock.advance(29_999);
  expect(breaker.admit(true)).toBe(REFUSED);
  await clock.advance(1);
  expect(breaker.admit(true)).not.toBe(REFUSED);
});

test('a probe that its caller gave up makes room for another one', async () => {
  const { clock, breaker, tries } = setUp({ probes: 1 });
  tries(20, 'failed');
  await clock.advance(30_000);
  tries(5, 'ignored');
  expect(breaker.state).toBe('half-open');
  tries(1, 'well');
  expect(breaker.state).toBe('closed');
});

test('a write that cannot be repeated is no probe', async () => {
  const { clock, breaker, tries } = setUp();
  tries(20, 'failed');
  await clock.advance(30_000);
  expect(breaker.admit(false)).toBe(REFUSED);
  expect(breaker.state).toBe('open');
  breaker.admit(true);
  expect(breaker.admit(false)).toBe(REFUSED);
});

test('the end of a try that began before the breaker opened decides nothing', async () => {
  const { clock, breaker, tries } = setUp();
  const slow = breaker.admit(true);
  tries(20, 'failed');
  expect(breaker.honours(slow)).toBe(false);
  await clock.advance(30_000);
  tries(1, 'well');
  breaker.settle(slow, 'failed');
  expect(breaker.state).toBe('half-open');
  tries(2, 'well');
  expect(breaker.state).toBe('closed');
});
