import { custom, optional, parseOptions, port } from '../options.js';
import { createGauges, feed, namesOf, SOURCE_OPTIONS, type MetricSources } from './metrics/sources.js';
import { METRICS, type MetricName } from './metrics/table.js';
import { type PromClient, type PromCounter, type PromHistogram, type PromRegistry } from './prometheus/prom-client.js';

export { METRICS, type MetricEntry, type MetricName } from './metrics/table.js';
export { type OutboxSource } from './metrics/outbox-gauges.js';
export { type TrafficSource } from './metrics/sources.js';
export { type PromClient, type PromRegistry } from './prometheus/prom-client.js';

export interface PrometheusOptions extends MetricSources {
  /** The `prom-client` module. */
  readonly client: PromClient;
  /** Default: `client.register`. */
  readonly registry?: PromRegistry;
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
  ...SOURCE_OPTIONS,
} as const;

/**
 * Counts the events of every room of the library in this process, in the metrics of {@link METRICS}. One call for each
 * process and registry.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function prometheusMetrics(options: PrometheusOptions): PrometheusMetrics {
  const parsed = parseOptions('prometheusMetrics', OPTIONS, options);
  const { client } = parsed;
  const registry = parsed.registry ?? client.register;

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

  const gauges = createGauges(parsed);
  for (const [name, read] of gauges.readers) {
    const gauge = new client.Gauge({
      ...configuration(name),
      collect: async () => {
        for (const [labels, value] of await read()) gauge.set(labels, value);
      },
    });
    registered.add(name);
  }

  const subscriptions = [
    ...gauges.subscriptions,
    ...feed({
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

function isPromClient(given: unknown): boolean {
  const module = given as Partial<PromClient> | null | undefined;
  return [module?.Counter, module?.Gauge, module?.Histogram].every((part) => typeof part === 'function');
}
