import { EVENT_METRICS } from './event-metrics.js';
import { OPERATION_METRICS } from './operation-metrics.js';
import { PROCESS_METRICS } from './process-metrics.js';

export { type MetricEntry } from './entry.js';

/** Every metric there is. Durations are in seconds, as Prometheus has them. */
export const METRICS = { ...PROCESS_METRICS, ...EVENT_METRICS, ...OPERATION_METRICS } as const;

export type MetricName = keyof typeof METRICS;
