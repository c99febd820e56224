import { createHttpClient, type HttpClient, type HttpResponse } from '../../src/client/index.js';
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
  type RawServer,
} from './raw-server.js';

export interface StormReport {
  readonly calls: number;
  readonly arrivals: number;
  /** Calls by how they ended: `answered` or an error's code. */
  readonly ends: Readonly<Record<string, number>>;
  /** What must not be. */
  readonly violations: readonly string[];
}

const SLOTS = 4;
const TRIES = 3;
const FAULTS = [
  resetDuringRequest,
  resetAfterRequest,
  closeAfterRequest,
  resetDuringAnswer,
  talkNonsense,
  respond(503),
  respond(503, { 'retry-after': '0' }),
];

/**
 * Sends writes through faults on bare sockets. Some callers give up at random moments, some calls are sent once without a key. Then
 * compares what arrived with what the callers were told.
 */
export async function storm(calls: number, seed: number): Promise<StormReport> {
  const next = sequence(seed);
  const script = Array.from({ length: calls * TRIES }, (): RawReaction =>
    next() < 0.4 ? FAULTS[Math.floor(next() * FAULTS.length)]! : respond(200),
  );
  const server = await rawServer(script, { resetFirst: 5 });
  const client = createHttpClient({
    name: 'storm',
    baseUrl: server.url,
    retry: { tries: TRIES, baseMs: 12, capMs: 12, budget: 1_000_000 },
    breaker: { window: 1_000, minimumTries: 1_000, failurePercent: 100 },
    connections: SLOTS,
    bulkhead: { queue: calls, queueMs: 600_000 },
    timeouts: { totalMs: 1_200_000 },
  });
  try {
    const ends = await Promise.all(Array.from({ length: calls }, (_, n) => send(client, n, next)));
    const violations = [...violationsOnTheWire(server), ...violationsOfTruth(server, ends)];
    // Were a slot lost, these would wait for ever.
    await Promise.all(
      Array.from({ length: 2 * SLOTS }, () => client.get('/after', { retry: false }).catch(() => null)),
    );
    const counted: Record<string, number> = {};
    for (const end of ends) counted[nameOf(end)] = (counted[nameOf(end)] ?? 0) + 1;
    return { calls, arrivals: server.arrivals.length, ends: counted, violations };
  } finally {
    await client.stop(AbortSignal.abort());
    await server.close();
  }
}

async function send(client: HttpClient, n: number, next: () => number): Promise<HttpResponse | Error> {
  const caller = new AbortController();
  const giveUp = (): void => {
    caller.abort();
  };
  const [impatient, once, afterMs] = [next() < 0.2, next() < 0.2, Math.floor(next() * 250)];
  if (impatient) setTimeout(giveUp, afterMs).unref();
  const how = once ? ({ retry: false } as const) : { idempotencyKey: `k-${n}` };
  return client
    .post(`/${n}`, { ...how, body: `body of ${n}`, signal: caller.signal })
    .catch((error: unknown) => error as Error);
}

function violationsOnTheWire(server: RawServer): string[] {
  const violations: string[] = [];
  if (server.mostAtOnce > SLOTS) violations.push(`${server.mostAtOnce} requests at once`);
  for (const [path, arrivals] of byPath(server)) {
    const { key } = arrivals[0]!;
    if (arrivals.length > (key === undefined ? 1 : TRIES)) violations.push(`${path} arrived ${arrivals.length} times`);
    if (arrivals.some((arrival) => arrival.key !== key)) violations.push(`${path} has two keys`);
    const sent = `body of ${path.slice(1)}`;
    // A request that was reset half-way arrived with less, never with something else.
    if (!arrivals.every(({ body }) => sent.startsWith(body.toString()))) violations.push(`${path} has two bodies`);
  }
  return violations;
}

function violationsOfTruth(server: RawServer, ends: readonly (HttpResponse | Error)[]): string[] {
  const arrived = byPath(server);
  return ends.flatMap((end, n) => {
    const count = arrived.get(`/${n}`)?.length ?? 0;
    if (!(end instanceof Error))
      return count >= 1 && count <= end.tries ? [] : [`/${n}: ${end.tries} tries, ${count} arrivals`];
    // Whose request has arrived must not be told that nothing was executed.
    return count === 0 || nameOf(end) === 'RS_CLIENT_OUTCOME_UNKNOWN'
      ? []
      : [`/${n} arrived, and was told ${nameOf(end)}`];
  });
}

function byPath({ arrivals }: RawServer): Map<string, RawArrival[]> {
  const grouped = new Map<string, RawArrival[]>();
  for (const arrival of arrivals) {
    const same = grouped.get(arrival.path);
    if (same === undefined) grouped.set(arrival.path, [arrival]);
    else same.push(arrival);
  }
  return grouped;
}

function nameOf(end: HttpResponse | Error): string {
  if (!(end instanceof Error)) return 'answered';
  return 'code' in end ? String(end.code) : end.name;
}

/** A fixed sequence that looks random. */
function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
