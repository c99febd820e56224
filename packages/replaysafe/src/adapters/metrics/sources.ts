import { onEvent, type EventName, type EventPayloads } from '../../events.js';
import { custom, integer, optional, port } from '../../options.js';
import { systemClock, type Clock } from '../../ports/clock.js';
import { FEEDS, type MetricSink } from './feeds.js';
import { pollOutbox, type OutboxSource } from './outbox-gauges.js';
import { followShutdown, type Subscription } from './shutdown-gauges.js';
import { METRICS, type MetricEntry, type MetricName } from './table.js';

/** What is asked of a lifecycle when gauges are read: the traffic of its servers. */
export interface TrafficSource {
  traffic(): readonly { readonly server: string; readonly connections: number; readonly requests: number }[];
}

/** What every adapter for metrics can be given beside its own client. */
export interface MetricSources {
  /** Adds the gauges of open connections and requests in flight. */
  readonly lifecycle?: TrafficSource;
  /** Adds the gauges of the outbox: a query when they are read, at most once in `outboxCacheMs`. */
  readonly outbox?: OutboxSource;
  /** Default 5 s. */
  readonly outboxCacheMs?: number;
  /** Default 2 s. */
  readonly outboxTimeoutMs?: number;
  /** Upper bounds of the histograms, in seconds. Default 5 ms to 30 s. */
  readonly buckets?: readonly number[];
  readonly clock?: Clock;
}

export const SOURCE_OPTIONS = {
  lifecycle: optional(port<TrafficSource>(['traffic'])),
  outbox: optional(port<OutboxSource>(['status'])),
  outboxCacheMs: integer({ default: 5_000 }),
  outboxTimeoutMs: integer({ default: 2_000, min: 1 }),
  buckets: custom<readonly number[]>(
    (given) =>
      Array.isArray(given) && given.every((bound) => typeof bound === 'number')
        ? undefined
        : 'must be a list of numbers',
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
  ),
  clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
} as const;

/** The values of a gauge at this moment, each with its labels. */
export type Reading = readonly (readonly [labels: Record<string, string>, value: number])[];

export interface Gauges {
  /** Every gauge that the given sources can answer. */
  readonly readers: ReadonlyMap<MetricName, () => Reading | Promise<Reading>>;
  readonly subscriptions: readonly Subscription[];
}

interface ParsedSources {
  readonly lifecycle: TrafficSource | undefined;
  readonly outbox: OutboxSource | undefined;
  readonly outboxCacheMs: number;
  readonly outboxTimeoutMs: number;
  readonly clock: Clock;
}

export function createGauges(sources: ParsedSources): Gauges {
  const { lifecycle, clock } = sources;
  const shutdown = followShutdown(clock);
  const readers = new Map<MetricName, () => Reading | Promise<Reading>>([
    ['app_shutdown_duration_seconds', () => [[{}, shutdown.wholeMs() / 1_000]]],
    [
      'app_shutdown_phase_duration_seconds',
      () => [...shutdown.phasesMs()].map(([phase, ms]) => [{ phase }, ms / 1_000] as const),
    ],
  ]);
  if (lifecycle) {
    readers.set('replaysafe_http_connections', () =>
      lifecycle.traffic().map(({ server, connections }) => [{ server }, connections]),
    );
    readers.set('replaysafe_http_requests_in_flight', () =>
      lifecycle.traffic().map(({ server, requests }) => [{ server }, requests]),
    );
  }
  if (sources.outbox) {
    const read = pollOutbox({
      outbox: sources.outbox,
      clock,
      cacheMs: sources.outboxCacheMs,
      timeoutMs: sources.outboxTimeoutMs,
    });
    readers.set('replaysafe_outbox_events', async () =>
      Object.entries((await read()).events).map(([status, count]) => [{ status }, count]),
    );
    readers.set('replaysafe_outbox_oldest_open_age_seconds', async () => [
      [{}, (await read()).oldestOpenAgeMs / 1_000],
    ]);
  }
  return { readers, subscriptions: shutdown.subscriptions };
}

/** Counts every event that has a feed into the sink. */
export function feed(sink: MetricSink): readonly Subscription[] {
  return (Object.keys(FEEDS) as EventName[]).map((name) => {
    const count = FEEDS[name] as (sink: MetricSink, event: EventPayloads[EventName]) => void;
    return onEvent(name, (event) => {
      count(sink, event);
    });
  });
}

export function namesOf(type: MetricEntry['type']): readonly MetricName[] {
  return (Object.keys(METRICS) as MetricName[]).filter((name) => METRICS[name].type === type);
}
