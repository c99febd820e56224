import { parseOptions, port } from '../options.js';
import { createGauges, feed, namesOf, SOURCE_OPTIONS, type MetricSources } from './metrics/sources.js';
import { METRICS, type MetricEntry, type MetricName } from './metrics/table.js';
import { type OtelCounter, type OtelHistogram, type OtelMeter, type OtelObservableCallback } from './otel/meter.js';

export { METRICS, type MetricEntry, type MetricName } from './metrics/table.js';
export { type OutboxSource } from './metrics/outbox-gauges.js';
export { type TrafficSource } from './metrics/sources.js';
export { type OtelMeter } from './otel/meter.js';

export interface OtelOptions extends MetricSources {
  /** `metrics.getMeter('my-service')` of `@opentelemetry/api`. */
  readonly meter: OtelMeter;
}

export interface OtelMetrics {
  /** Stops counting; the instruments stay, since a meter cannot give them back, and report nothing new. */
  close(): void;
}

const OPTIONS = {
  meter: port<OtelMeter>(['createCounter', 'createHistogram', 'createObservableGauge']),
  ...SOURCE_OPTIONS,
} as const;

/**
 * Counts the events of every room of the library in this process, in the metrics of {@link METRICS}: the names that
 * `prometheusMetrics` uses, so that dashboards do not depend on the way the figures take. One call for each process.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function otelMetrics(options: OtelOptions): OtelMetrics {
  const parsed = parseOptions('otelMetrics', OPTIONS, options);
  const { meter } = parsed;

  const instrument = (name: MetricName) => ({ description: METRICS[name].help, unit: unitOf(METRICS[name]) });
  const counters = new Map<MetricName, OtelCounter>();
  const histograms = new Map<MetricName, OtelHistogram>();
  for (const name of namesOf('counter')) counters.set(name, meter.createCounter(name, instrument(name)));
  for (const name of namesOf('histogram')) {
    const advice = { explicitBucketBoundaries: [...parsed.buckets] };
    histograms.set(name, meter.createHistogram(name, { ...instrument(name), advice }));
  }

  const gauges = createGauges(parsed);
  const forgetGauges = [...gauges.readers].map(([name, read]) => {
    const gauge = meter.createObservableGauge(name, instrument(name));
    const observe: OtelObservableCallback = async (result) => {
      for (const [labels, value] of await read()) {
        // A series of NaN breaks exporters that write JSON; what is not known is not reported.
        if (!Number.isNaN(value)) result.observe(value, labels);
      }
    };
    gauge.addCallback(observe);
    return () => {
      gauge.removeCallback(observe);
    };
  });

  const subscriptions = [
    ...gauges.subscriptions,
    ...feed({
      add: (name, amount, labels = {}) => counters.get(name)?.add(amount, { ...labels }),
      observeMs: (name, durationMs, labels = {}) => histograms.get(name)?.record(durationMs / 1_000, { ...labels }),
    }),
  ];

  return {
    close: () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
      for (const forget of forgetGauges) forget();
    },
  };
}

/** As UCUM writes it, which OpenTelemetry asks for. */
function unitOf({ unit }: MetricEntry): string {
  return unit === 'seconds' ? 's' : `{${unit}}`;
}
