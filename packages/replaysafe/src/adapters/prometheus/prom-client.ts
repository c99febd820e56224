/** The parts of the `prom-client` module (15 or later) that are used: pass `import * as client from 'prom-client'`. */
export interface PromClient {
  readonly Counter: new (configuration: MetricConfiguration) => PromCounter;
  readonly Gauge: new (configuration: GaugeConfiguration) => PromGauge;
  readonly Histogram: new (configuration: HistogramConfiguration) => PromHistogram;
  readonly register: PromRegistry;
}

export interface PromRegistry {
  removeSingleMetric(name: string): void;
}

interface MetricConfiguration {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  // The module's own type of registry, which only it can name.
  readonly registers: never[];
}

interface GaugeConfiguration extends MetricConfiguration {
  readonly collect?: () => void | Promise<void>;
}

interface HistogramConfiguration extends MetricConfiguration {
  readonly buckets: number[];
}

type LabelValues = Record<string, string>;

export interface PromCounter {
  inc(labels: LabelValues, value?: number): void;
}

export interface PromGauge {
  set(labels: LabelValues, value: number): void;
}

export interface PromHistogram {
  observe(labels: LabelValues, value: number): void;
}
