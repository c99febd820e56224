import { onEvent, type EventName, type EventPayloads } from '../events.js';
import { custom, integer, optional, parseOptions, port } from '../options.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { FEEDS, type MetricSink } from './prometheus/feeds.js';
import { METRICS, type MetricEntry, type MetricName } from './prometheus/metrics.js';
import { pollOutbox, type OutboxSource } from './prometheus/outbox-gauges.js';
import { type PromClient, type PromCounter, type PromHistogram, type PromRegistry } from './prometheus/prom-client.js';
import { followShutdown, type Subscription } from './prometheus/shutdown-gauges.js';

export { METRICS, type MetricEntry, type MetricName } from './prometheus/metrics.js';
export { type OutboxSource } from './prometheus/outbox-gauges.js';
export { type PromClient, type PromRegistry } from './prometheus/prom-client.js';

/** What a scrape asks of a lifecycle: the traffic of its servers. */
export interface TrafficSource {
  traffic(): readonly { readonly server: string; readonly connections: number; readonly requests: number }[];
}

export interface PrometheusOptions {
  /** The `prom-client` module. */
  readonly client: PromClient;
  /** Default: `client.register`. */
  readonly registry?: PromRegistry;
  /** Adds the gauges of open connections and requests in flight. */
  readonly lifecycle?: TrafficSource;
  /** Adds the gauges of the outbox: a query on a scrape, at most once in `outboxCacheMs`. */
  readonly outbox?: OutboxSource;
  /** Default 5 s. */
  readonly outboxCacheMs?: number;
  /** Default 2 s. */
  readonly outboxTimeoutMs?: number;
  /** Upper bounds of the histograms, in seconds. Default 5 ms to 30 s. */
  readonly buckets?: readonly number[];
  readonly clock?: Clock;
}

export interface PrometheusMetrics {
  /** Stops counting and takes the metrics out of the registry. */
  close(): void;
}

const OPTIONS = {
  client: custom<PromClient>((given) =>
    isPromClient(given) ? undefined : 'must be the module prom-client, with Counter, Gauge, Histogram and register',
  ),
  registry: optional(port<PromRegistry>(['removeSingleMetric'])),
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

/**
 * Counts the events of every room of the library in this process, in the metrics of {@link METRICS}. One call for each
 * process and registry.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function prometheusMetrics(options: PrometheusOptions): PrometheusMetrics {
  const parsed = parseOptions('prometheusMetrics', OPTIONS, options);
  const { client, clock, lifecycle } = parsed;
  const registry = parsed.registry ?? client.register;
  const outbox = parsed.outbox && {
    read: pollOutbox({
      outbox: parsed.outbox,
      clock,
      cacheMs: parsed.outboxCacheMs,
      timeoutMs: parsed.outboxTimeoutMs,
    }),
  };

  const configuration = (name: MetricName) => ({
    name,
    help: METRICS[name].help,
    labelNames: [...METRICS[name].labels],
    registers: [registry] as never[],
  });
  const registered = new Set<MetricName>();

  const counters = new Map<MetricName, PromCounter>();
  const histograms = new Map<MetricName, PromHistogram>();
  for (const name of namesOf('counter')) {
    counters.set(name, new client.Counter(configuration(name)));
    registered.add(name);
  }
  for (const name of namesOf('histogram')) {
    histograms.set(name, new client.Histogram({ ...configuration(name), buckets: [...parsed.buckets] }));
    registered.add(name);
  }

  /** A gauge that is asked for its values when it is scraped. */
  const gauge = (name: MetricName, read: () => Reading | Promise<Reading>): void => {
    const created = new client.Gauge({
      ...configuration(name),
      collect: async () => {
        for (const [labels, value] of await read()) created.set(labels, value);
      },
    });
    registered.add(name);
  };

  const shutdown = followShutdown(clock);
  gauge('app_shutdown_duration_seconds', () => [[{}, shutdown.wholeMs() / 1_000]]);
  gauge('app_shutdown_phase_duration_seconds', () =>
    [...shutdown.phasesMs()].map(([phase, ms]) => [{ phase }, ms / 1_000]),
  );
  if (lifecycle) {
    gauge('replaysafe_http_connections', () =>
      lifecycle.traffic().map(({ server, connections }) => [{ server }, connections]),
    );
    gauge('replaysafe_http_requests_in_flight', () =>
      lifecycle.traffic().map(({ server, requests }) => [{ server }, requests]),
    );
  }
  if (outbox) {
    gauge('replaysafe_outbox_events', async () =>
      Object.entries((await outbox.read()).events).map(([status, count]) => [{ status }, count]),
    );
    gauge('replaysafe_outbox_oldest_open_age_seconds', async () => [
      [{}, (await outbox.read()).oldestOpenAgeMs / 1_000],
    ]);
  }

  const subscriptions = [
    ...shutdown.subscriptions,
    ...subscribeFeeds({
      add: (name, amount, labels = {}) => counters.get(name)?.inc({ ...labels }, amount),
      observeMs: (name, durationMs, labels = {}) => histograms.get(name)?.observe({ ...labels }, durationMs / 1_000),
    }),
  ];

  return {
    close: () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      for (const name of registered) registry.removeSingleMetric(name);
    },
  };
}

type Reading = readonly (readonly [labels: Record<string, string>, value: number])[];

function namesOf(type: MetricEntry['type']): readonly MetricName[] {
  return (Object.keys(METRICS) as MetricName[]).filter((name) => METRICS[name].type === type);
}

function subscribeFeeds(sink: MetricSink): readonly Subscription[] {
  return (Object.keys(FEEDS) as EventName[]).map((name) => {
    const feed = FEEDS[name] as (sink: MetricSink, event: EventPayloads[EventName]) => void;
    return onEvent(name, (event) => {
      feed(sink, event);
    });
  });
}

function isPromClient(given: unknown): boolean {
  const module = given as Partial<PromClient> | null | undefined;
  return [module?.Counter, module?.Gauge, module?.Histogram].every((part) => typeof part === 'function');
}
