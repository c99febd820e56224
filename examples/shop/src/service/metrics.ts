import * as promClient from 'prom-client';
import type { Lifecycle } from 'replaysafe/lifecycle';
import type { Outbox } from 'replaysafe/outbox';
import { prometheusMetrics } from 'replaysafe/adapters/prometheus';

/** What `GET /metrics` shows: Node's own metrics, the library's, and the outbox where the service has one. */
export function createMetrics(lifecycle: Lifecycle, outbox?: Pick<Outbox<unknown>, 'status'>): promClient.Registry {
  const registry = new promClient.Registry();
  promClient.collectDefaultMetrics({ register: registry });
  prometheusMetrics({ client: promClient, registry, lifecycle, ...(outbox && { outbox }) });
  return registry;
}
