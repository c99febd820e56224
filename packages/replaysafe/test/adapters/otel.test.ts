import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { METRICS as PROMETHEUS } from '../../src/adapters/prometheus.js';
import { METRICS, otelMetrics, type OtelMetrics, type OtelOptions } from '../../src/adapters/otel.js';
import { emit } from '../../src/events.js';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { createFakeClock } from '../../src/testing/index.js';

class Scraper extends MetricReader {
  protected onForceFlush = (): Promise<void> => Promise.resolve();
  protected onShutdown = (): Promise<void> => Promise.resolve();
}

const clock = createFakeClock();
let scraper: Scraper;
let provider: MeterProvider;
let metrics: OtelMetrics | undefined;

const measure = (options: Omit<OtelOptions, 'meter'> = {}): OtelMetrics =>
  (metrics = otelMetrics({ meter: provider.getMeter('test'), clock, ...options }));

/** Every series as `name{labels} value`; of a histogram its count and sum. */
const scrape = async (): Promise<readonly string[]> => {
  const { resourceMetrics, errors } = await scraper.collect();
  expect(errors).toEqual([]);
  return resourceMetrics.scopeMetrics
    .flatMap((scope) => scope.metrics)
    .flatMap((metric) =>
      metric.dataPoints.map(({ attributes, value }) => {
        const shown = typeof value === 'number' ? value : summary(value);
        return `${metric.descriptor.name}${JSON.stringify(attributes)} ${shown}`;
      }),
    );
};
const summary = (value: unknown): string => {
  const { count, sum } = value as { count: number; sum: number };
  return `${count} ${sum}`;
};

beforeEach(() => {
  scraper = new Scraper();
  provider = new MeterProvider({ readers: [scraper] });
});

afterEach(async () => {
  metrics?.close();
  await provider.shutdown();
});

describe('otelMetrics', () => {
  it('R-SHUT-OBS-2 reports the shutdown live from its first moment, and what has ended with its length', async () => {
    const lifecycle = createLifecycle({ clock });
    measure({ lifecycle });
    expect(await scrape()).toContain('app_shutdown_duration_seconds{} 0');
    lifecycle.relay({ name: 'relay', stop: () => new Promise((resolve) => void clock.setTimer(3_000, resolve)) });
    const stopped = lifecycle.stop();
    await clock.advance(1_500);
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'app_shutdown_duration_seconds{} 1.5',
        'app_shutdown_phase_duration_seconds{"phase":"work"} 1.5',
      ]),
    );
    await clock.advance(60_000);
    await stopped;
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'app_shutdown_duration_seconds{} 3',
        'replaysafe_shutdown_resources_total{"outcome":"stopped"} 1',
      ]),
    );
  });

  it('counts events and lengths under the names that Prometheus has', async () => {
    measure();
    emit('outbox.enqueued', { ids: ['1', '2'], topics: ['orders.confirmed'] });
    emit('outbox.published', { relay: 'relay-x', ids: ['1', '2'], durationMs: 20 });
    emit('lifecycle.worker-ran', { worker: 'cleaner', durationMs: 5, error: new Error('x') });
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'replaysafe_outbox_enqueued_total{} 2',
        'replaysafe_outbox_publish_duration_seconds{} 1 0.02',
        'replaysafe_worker_runs_total{"worker":"cleaner","outcome":"failed"} 1',
      ]),
    );
    expect(METRICS).toBe(PROMETHEUS);
  });

  it('says nothing of the outbox while the database hangs, and goes on with the rest', async () => {
    measure({ outbox: { status: () => new Promise<never>(() => undefined) } });
    const scraped = scrape();
    await clock.advance(2_000);
    const lines = await scraped;
    expect(lines).toContain('app_shutdown_duration_seconds{} 0');
    expect(lines.filter((line) => line.includes('replaysafe_outbox'))).toEqual([]);
  });

  it('counts nothing once it is closed', async () => {
    measure().close();
    emit('outbox.fenced', { relay: 'relay-x', count: 1 });
    expect(await scrape()).toEqual([]);
  });

  it('refuses what is no meter', () => {
    expect(() => otelMetrics({ meter: {} } as never)).toThrow(expect.objectContaining({ code: 'RS_OPTION_INVALID' }));
    expect(() => otelMetrics({} as never)).toThrow(expect.objectContaining({ code: 'RS_OPTION_REQUIRED' }));
  });
});
