import { drainRun, total } from '@replaysafe/test-services';
import { describe, expect, test } from 'vitest';
import { BARE, DRAIN_TIMES, SET_UPS } from './set-ups.js';

/** What a busy machine may add to the exit. How exact it is, `npm run test:drain` tells. */
const SLACK_MS = 1_500;
const run = (name: string, sticky: boolean) =>
  drainRun({ ...SET_UPS[name]!, ...DRAIN_TIMES, oneWayMs: 5, sticky, slackMs: SLACK_MS });

describe.each(['node', 'express-5', 'fastify'])(
  'R-SHUT-1, R-SHUT-HTTP-1: %s loses nothing and resets nobody',
  (name) => {
    test('when its clients leave', async () => {
      const { complaints, counts } = await run(name, false);
      expect(complaints, JSON.stringify(counts, null, 1)).toEqual([]);
      expect(counts.map(({ kind }) => kind)).toEqual(
        expect.arrayContaining(['slow download', 'WebSocket', 'pipelined']),
      );
    });

    test('when some go on for as long as anybody listens', async () => {
      const { complaints, counts } = await run(name, true);
      expect(complaints, JSON.stringify(counts, null, 1)).toEqual([]);
    });
  },
);

test('a server that is merely closed loses requests, and the test sees it', async () => {
  const { counts } = await drainRun({ ...BARE, ...DRAIN_TIMES, oneWayMs: 5 });
  expect(total(counts, 'lost') + total(counts, 'reset') + total(counts, 'crossed')).toBeGreaterThan(5);
  expect(total(counts, 'lost')).toBeGreaterThan(0);
});
