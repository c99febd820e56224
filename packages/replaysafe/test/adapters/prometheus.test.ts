import { readFileSync } from 'node:fs';
import * as client from 'prom-client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { METRICS, prometheusMetrics, type MetricEntry, type PrometheusMetrics } from '../../src/adapters/prometheus.js';
import { FEEDS } from '../../src/adapters/metrics/feeds.js';
import { emit, EVENTS, type EventName } from '../../src/events.js';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { createFakeClock } from '../../src/testing/index.js';

const clock = createFakeClock();
let registry: client.Registry;
let metrics: PrometheusMetrics | undefined;

beforeEach(() => {
  registry = new client.Registry();
});

afterEach(() => {
  metrics?.close();
  metrics = undefined;
});

const scrape = async () =>
  (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));

describe('the shutdown gauges', () => {
  it('R-SHUT-OBS-2 are live from the first moment of the stop, and keep the length of what has ended', async () => {
    const lifecycle = createLifecycle({ clock });
    metrics = prometheusMetrics({ client, registry, lifecycle, clock });
    expect(await scrape()).toContain('app_shutdown_duration_seconds 0');
    lifecycle.relay({ name: 'relay', stop: () => new Promise((resolve) => void clock.setTimer(3_000, resolve)) });
    lifecycle.pool({ name: 'pool', end: () => new Promise<void>((resolve) => void clock.setTimer(2_000, resolve)) });
    const stopped = lifecycle.stop();
    await clock.advance(1_500);
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'app_shutdown_duration_seconds 1.5',
        'app_shutdown_phase_duration_seconds{phase="work"} 1.5',
      ]),
    );
    await clock.advance(2_500);
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'app_shutdown_duration_seconds 4',
        'app_shutdown_phase_duration_seconds{phase="work"} 3',
        'app_shutdown_phase_duration_seconds{phase="pools"} 1',
      ]),
    );
    await clock.advance(60_000);
    await stopped;
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'app_shutdown_duration_seconds 5',
        'replaysafe_shutdown_resources_total{outcome="stopped"} 2',
      ]),
    );
  });
});

describe('the counters', () => {
  it('are fed from the events of every room', async () => {
    metrics = prometheusMetrics({ client, registry });
    const batch = { consumer: 'billing', topic: 'orders.confirmed', partition: 0 };
    const call = { client: 'provider', method: 'POST' };
    emit('outbox.enqueued', { ids: ['1', '2'], topics: ['orders.confirmed'] });
    emit('outbox.published', { relay: 'relay-x', ids: ['1', '2'], durationMs: 20 });
    emit('outbox.failed', { relay: 'relay-x', ids: ['3'], outcome: 'retriable' });
    emit('outbox.dead', { relay: 'relay-x', ids: ['4'], reason: 'rejected' });
    emit('outbox.fenced', { relay: 'relay-x', count: 5 });
    emit('inbox.committed', { ...batch, eventIds: ['1', '2'], duplicates: 0 });
    emit('inbox.duplicate', { ...batch, eventIds: ['1'] });
    emit('inbox.parked', { ...batch, eventId: '9', reason: 'payload' });
    emit('inbox.failed', { ...batch, error: new Error('x'), attempt: 1, infrastructure: true });
    emit('idempotency.executed', { keyHash: 'h', status: 201 });
    emit('idempotency.replayed', { keyHash: 'h', status: 201 });
    emit('idempotency.refused', { keyHash: 'h', code: 'RS_IDEMPOTENCY_KEY_REUSED' });
    emit('client.attempted', { ...call, attempt: 1 });
    emit('client.failed', { ...call, attempt: 1, code: 'RS_CLIENT_TIMEOUT' });
    emit('client.attempted', { ...call, attempt: 2 });
    emit('client.answered', { ...call, attempt: 2, status: 200, durationMs: 30 });
    emit('lifecycle.worker-ran', { worker: 'cleaner', durationMs: 5, error: undefined });
    expect(await scrape()).toEqual(
      expect.arrayContaining([
        'replaysafe_outbox_enqueued_total 2',
        'replaysafe_outbox_published_total 2',
        'replaysafe_outbox_publish_duration_seconds_sum 0.02',
        'replaysafe_outbox_failed_total{outcome="retriable"} 1',
        'replaysafe_outbox_dead_total 1',
        'replaysafe_outbox_fenced_total 5',
        'replaysafe_inbox_committed_total{consumer="billing",topic="orders.confirmed"} 2',
        'replaysafe_inbox_duplicates_total{consumer="billing",topic="orders.confirmed"} 1',
        'replaysafe_inbox_parked_total{consumer="billing",topic="orders.confirmed"} 1',
        'replaysafe_inbox_failed_total{consumer="billing",topic="orders.confirmed",cause="infrastructure"} 1',
        'replaysafe_idempotency_executed_total{status="2xx"} 1',
        'replaysafe_idempotency_replayed_total{status="2xx"} 1',
        'replaysafe_idempotency_refused_total{code="RS_IDEMPOTENCY_KEY_REUSED"} 1',
        'replaysafe_client_tries_total{client="provider",method="POST",repeat="no"} 1',
        'replaysafe_client_tries_total{client="provider",method="POST",repeat="yes"} 1',
        'replaysafe_client_failures_total{client="provider",method="POST",code="RS_CLIENT_TIMEOUT"} 1',
        'replaysafe_client_answers_total{client="provider",method="POST",status="2xx"} 1',
        'replaysafe_worker_runs_total{worker="cleaner",outcome="ok"} 1',
      ]),
    );
  });

  it('stop counting and leave the registry when closed', async () => {
    prometheusMetrics({ client, registry }).close();
    expect(await scrape()).toEqual([]);
    metrics = prometheusMetrics({ client, registry });
    emit('outbox.fenced', { relay: 'relay-x', count: 1 });
    expect(await scrape()).toContain('replaysafe_outbox_fenced_total 1');
  });
});

describe('the outbox gauges', () => {
  const status = { pending: 7, publishing: 2, dead: 1, oldestOpenAgeMs: 1_500 };

  it('ask the outbox once for a scrape, and again only after a while', async () => {
    let asked = 0;
    const outbox = { status: () => Promise.resolve({ ...status, pending: status.pending + asked++ }) };
    metrics = prometheusMetrics({ client, registry, outbox, clock, outboxCacheMs: 1_000 });
    const expected = [
      'replaysafe_outbox_events{status="pending"} 7',
      'replaysafe_outbox_events{status="dead"} 1',
      'replaysafe_outbox_oldest_open_age_seconds 1.5',
    ];
    expect(await scrape()).toEqual(expect.arrayContaining(expected));
    expect(await scrape()).toEqual(expect.arrayContaining(expected));
    expect(asked).toBe(1);
    await clock.advance(1_000);
    expect(await scrape()).toContain('replaysafe_outbox_events{status="pending"} 8');
  });

  it.each([
    ['fails', () => Promise.reject(new Error('no database'))],
    ['hangs', () => new Promise<never>(() => undefined)],
  ])('are NaN, not 0, while the database %s, and the scrape goes on', async (_, answer) => {
    metrics = prometheusMetrics({ client, registry, outbox: { status: answer }, clock });
    const scraped = scrape();
    await clock.advance(2_000);
    const lines = await scraped;
    expect(lines).toContain('replaysafe_outbox_dead_total 0');
    expect(lines.filter((line) => /outbox_(events|oldest)/.test(line)).map((line) => line.split(' ')[1])).toEqual([
      'Nan',
      'Nan',
      'Nan',
      'Nan',
    ]);
  });
});

describe('the table of metrics', () => {
  const entries = Object.entries(METRICS) as [string, MetricEntry][];

  it('agrees with its page', () => {
    const page = readFileSync(new URL('../../../../docs/metrics.md', import.meta.url), 'utf8');
    const cell = (text: string) => text.trim().replaceAll('`', '');
    const rows = page
      .split('\n')
      .filter((line) => /^\| `\w+`/.test(line))
      .map((line) => line.split('|').slice(1, -1).map(cell));
    expect(rows).toEqual(
      entries.map(([name, { type, unit, labels, from, help }]) => [
        name,
        type,
        unit,
        labels.length > 0 ? labels.join(', ') : '—',
        from,
        help.replaceAll('`', ''),
      ]),
    );
  });

  it('has a metric of every event, but for the steps between two that are counted', () => {
    const counted = new Set<string>([...Object.keys(FEEDS), ...entries.map(([, { from }]) => from)]);
    expect((Object.keys(EVENTS) as EventName[]).filter((name) => !counted.has(name))).toEqual([
      'migrate.applied',
      'inbox.prepared',
      'inbox.handled',
      'inbox.offset-committed',
      'client.backed-off',
      'task.claimed',
      'lifecycle.started',
      'lifecycle.phase-ended',
      'lifecycle.lease-taken',
      'lifecycle.stopped',
    ]);
  });

  it('names its metrics by the rules of Prometheus', () => {
    for (const [name, { type, unit }] of entries) {
      expect(name).toMatch(/^(app|replaysafe)_[a-z_]+$/);
      expect(name.endsWith('_total'), name).toBe(type === 'counter');
      expect(name.endsWith('_seconds'), name).toBe(unit === 'seconds');
    }
  });
});

describe('prometheusMetrics', () => {
  it('refuses what is not prom-client, and unknown options', () => {
    expect(() => prometheusMetrics({ client: {} } as never)).toThrow(
      expect.objectContaining({ code: 'RS_OPTION_INVALID' }),
    );
    expect(() => prometheusMetrics({ client, regstry: registry } as never)).toThrow('did you mean "registry"?');
  });
});
