import { existsSync, readFileSync } from 'node:fs';
import { type EventName, EVENTS } from 'replaysafe';
import { describe, expect, test } from 'vitest';
import { KILL_POINTS, KILLED_ELSEWHERE } from './kill-points.js';

const durable = (Object.keys(EVENTS) as EventName[]).filter((event) => EVENTS[event].durable);

describe('the kill points', () => {
  test.each(durable)('have %s, which is durable', (event) => {
    expect(KILL_POINTS.some((point) => point.event === event) || KILLED_ELSEWHERE[event] !== undefined).toBe(true);
  });

  test('are durable events', () => {
    const events = [...KILL_POINTS.map((point) => point.event), ...Object.keys(KILLED_ELSEWHERE)];
    expect([...new Set(events)].sort()).toEqual([...durable].sort());
  });

  test('of the relay are tried in both of its modes', () => {
    for (const { event, modes } of KILL_POINTS) {
      if (event.startsWith('outbox.')) expect(modes).toEqual(['single-phase', 'two-phase']);
    }
  });

  test('that are killed at elsewhere are named there', () => {
    for (const [event, file] of Object.entries(KILLED_ELSEWHERE)) {
      const path = new URL(file, import.meta.url);
      expect(existsSync(path)).toBe(true);
      expect(readFileSync(path, 'utf8')).toContain(event);
    }
  });
});
