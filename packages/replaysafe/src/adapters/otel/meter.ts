/** The parts of a `Meter` of `@opentelemetry/api` (1.x) that are used: pass `metrics.getMeter('my-service')`. */
export interface OtelMeter {
  createCounter(name: string, options: InstrumentOptions): OtelCounter;
  createHistogram(name: string, options: HistogramOptions): OtelHistogram;
  createObservableGauge(name: string, options: InstrumentOptions): OtelObservableGauge;
}

interface InstrumentOptions {
  readonly description: string;
  readonly unit: string;
}

interface HistogramOptions extends InstrumentOptions {
  readonly advice: { explicitBucketBoundaries: number[] };
}

type Attributes = Record<string, string>;

export interface OtelCounter {
  add(value: number, attributes: Attributes): void;
}

export interface OtelHistogram {
  record(value: number, attributes: Attributes): void;
}

export interface OtelObservableResult {
  observe(value: number, attributes: Attributes): void;
}

export type OtelObservableCallback = (result: OtelObservableResult) => void | Promise<void>;

export interface OtelObservableGauge {
  addCallback(callback: OtelObservableCallback): void;
  removeCallback(callback: OtelObservableCallback): void;
}
