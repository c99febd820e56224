import { afterEach, expect, test } from 'vitest';
import { createHttpClient, type HttpResponse } from '../../src/client/index.js';
import {
  closeAfterRequest,
  rawServer,
  resetAfterRequest,
  resetDuringAnswer,
  resetDuringRequest,
  respond,
  talkNonsense,
  type RawArrival,
  type RawReaction,
} from './raw-server.js';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});

/** A fixed sequence that looks random. */
function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const FAULTS = [
  resetDuringRequest,
  resetAfterRequest,
  closeAfterRequest,
  resetDuringAnswer,
  talkNonsense,
  respond(503),
  respond(503, { 'retry-after': '0' }),
];

test('a storm of faults, aborts and deadlines: one key, one body, at most three arrivals, and every slot comes back', async () => {
  const next = sequence(42);
  const script = Array.from({ length: 2_000 }, (): RawReaction =>
    next() < 0.4 ? FAULTS[Math.floor(next() * FAULTS.length)]! : respond(200),
  );
  const server = await rawServer(script, { resetFirst: 5 });
  const client = createHttpClient({
    name: 'storm',
    baseUrl: server.url,
    retry: { baseMs: 12, capMs: 12, budget: 1_000_000 },
    breaker: { window: 1_000, minimumTries: 1_000, failurePercent: 100 },
    connections: 4,
    bulkhead: { concurrent: 4, queue: 1_000, queueMs: 30_000 },
  });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  const ends = await Promise.all(
    Array.from({ length: 400 }, async (_, n): Promise<HttpResponse | Error> => {
      const caller = new AbortController();
      const [impatient, once] = [next() < 0.4, next() < 0.2];
      const giveUp = (): void => {
        caller.abort();
      };
      if (impatient) setTimeout(giveUp, Math.floor(next() * 250)).unref();
      const key = once ? {} : { idempotencyKey: `k-${n}` };
      return client
        .post(`/${n}`, { ...key, body: `body of ${n}`, signal: caller.signal, ...(once ? { retry: false } : {}) })
        .catch((error: unknown) => error as Error);
    }),
  );

  const perCall = new Map<string, RawArrival[]>();
  for (const arrival of server.arrivals) perCall.set(arrival.path, [...(perCall.get(arrival.path) ?? []), arrival]);
  for (const [path, arrivals] of perCall) {
    const key = arrivals[0]!.key;
    expect(arrivals.length).toBeLessThanOrEqual(key === undefined ? 1 : 3);
    expect(new Set(arrivals.map((arrival) => arrival.key)).size).toBe(1);
    for (const { body } of arrivals) {
      // A request that was reset half-way in arrived with less, never with something else.
      expect(`body of ${path.slice(1)}`.startsWith(body.toString())).toBe(true);
    }
  }
  for (const [n, end] of ends.entries()) {
    const arrived = perCall.get(`/${n}`)?.length ?? 0;
    if (!(end instanceof Error)) expect([end.tries >= arrived, arrived > 0]).toEqual([true, true]);
    // Whose request has arrived is not told that nothing was executed.
    else if (arrived > 0) expect(end).toMatchObject({ code: 'RS_CLIENT_OUTCOME_UNKNOWN' });
  }
  expect(server.mostAtOnce).toBeLessThanOrEqual(4);
  const after = await Promise.all(
    Array.from({ length: 8 }, (_, n) => client.get(`/after-${n}`, { retry: false }).catch(() => null)),
  );
  expect(after).toHaveLength(8);
});
