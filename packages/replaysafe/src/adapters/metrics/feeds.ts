import { type EventName, type EventPayloads } from '../../events.js';
import { type MetricName } from './table.js';

export type Labels = Readonly<Record<string, string>>;

/** Where events are counted. */
export interface MetricSink {
  add(name: MetricName, amount: number, labels?: Labels): void;
  observeMs(name: MetricName, durationMs: number, labels?: Labels): void;
}

/** How each event is counted. Events that are not here are steps between two that are. */
export const FEEDS: { readonly [Name in EventName]?: (sink: MetricSink, event: EventPayloads[Name]) => void } = {
  'lifecycle.resource-stopped': (sink, { outcome }) => {
    sink.add('replaysafe_shutdown_resources_total', 1, { outcome });
  },
  'lifecycle.http-drained': (sink, { server, requests, cut, timedOut, lateAfterFin }) => {
    const outcomes = { served: requests, cut, 'timed-out': timedOut, late: lateAfterFin };
    for (const [outcome, count] of Object.entries(outcomes)) {
      sink.add('replaysafe_http_drained_requests_total', count, { server, outcome });
    }
  },
  'lifecycle.worker-ran': (sink, { worker, durationMs, error }) => {
    sink.add('replaysafe_worker_runs_total', 1, { worker, outcome: error === undefined ? 'ok' : 'failed' });
    sink.observeMs('replaysafe_worker_run_duration_seconds', durationMs, { worker });
  },
  'lifecycle.lease-lost': (sink, { worker }) => {
    sink.add('replaysafe_worker_leases_lost_total', 1, { worker });
  },

  'outbox.enqueued': (sink, { ids }) => {
    sink.add('replaysafe_outbox_enqueued_total', ids.length);
  },
  'outbox.claimed': (sink, { ids, mode }) => {
    sink.add('replaysafe_outbox_claimed_total', ids.length, { mode });
  },
  'outbox.published': (sink, { ids, durationMs }) => {
    sink.add('replaysafe_outbox_published_total', ids.length);
    sink.observeMs('replaysafe_outbox_publish_duration_seconds', durationMs);
  },
  'outbox.marked': (sink, { ids, mode }) => {
    sink.add('replaysafe_outbox_marked_total', ids.length, { mode });
  },
  'outbox.failed': (sink, { ids, outcome }) => {
    sink.add('replaysafe_outbox_failed_total', ids.length, { outcome });
  },
  'outbox.dead': (sink, { ids }) => {
    sink.add('replaysafe_outbox_dead_total', ids.length);
  },
  'outbox.fenced': (sink, { count }) => {
    sink.add('replaysafe_outbox_fenced_total', count);
  },
  'outbox.released': (sink, { ids }) => {
    sink.add('replaysafe_outbox_released_total', ids.length);
  },
  'outbox.recovered': (sink, { ids }) => {
    sink.add('replaysafe_outbox_recovered_total', ids.length);
  },
  'outbox.errored': (sink) => {
    sink.add('replaysafe_outbox_errors_total', 1);
  },

  'inbox.received': (sink, { consumer, topic, count }) => {
    sink.add('replaysafe_inbox_received_total', count, { consumer, topic });
  },
  'inbox.committed': (sink, { consumer, topic, eventIds }) => {
    sink.add('replaysafe_inbox_committed_total', eventIds.length, { consumer, topic });
  },
  'inbox.duplicate': (sink, { consumer, topic, eventIds }) => {
    sink.add('replaysafe_inbox_duplicates_total', eventIds.length, { consumer, topic });
  },
  'inbox.parked': (sink, { consumer, topic }) => {
    sink.add('replaysafe_inbox_parked_total', 1, { consumer, topic });
  },
  'inbox.failed': (sink, { consumer, topic, infrastructure }) => {
    const cause = infrastructure ? 'infrastructure' : 'handler';
    sink.add('replaysafe_inbox_failed_total', 1, { consumer, topic, cause });
  },

  'idempotency.executed': (sink, { status }) => {
    sink.add('replaysafe_idempotency_executed_total', 1, { status: statusClass(status) });
  },
  'idempotency.replayed': (sink, { status }) => {
    sink.add('replaysafe_idempotency_replayed_total', 1, { status: statusClass(status) });
  },
  'idempotency.discarded': (sink, { status }) => {
    sink.add('replaysafe_idempotency_discarded_total', 1, { status: statusClass(status) });
  },
  'idempotency.refused': (sink, { code }) => {
    sink.add('replaysafe_idempotency_refused_total', 1, { code });
  },
  'idempotency.waited': (sink, { waitedMs }) => {
    sink.observeMs('replaysafe_idempotency_wait_seconds', waitedMs);
  },
  'idempotency.swept': (sink, { expired, deleted }) => {
    sink.add('replaysafe_idempotency_swept_total', expired, { what: 'answers' });
    sink.add('replaysafe_idempotency_swept_total', deleted, { what: 'keys' });
  },

  'task.enqueued': (sink, { kind }) => {
    sink.add('replaysafe_task_enqueued_total', 1, { kind });
  },
  'task.succeeded': (sink, { ids }) => {
    sink.add('replaysafe_task_succeeded_total', ids.length);
  },
  'task.failed': (sink, { kind }) => {
    sink.add('replaysafe_task_failed_total', 1, { kind });
  },
  'task.given-up': (sink, { kind, reason }) => {
    sink.add('replaysafe_task_given_up_total', 1, { kind, reason });
  },
  'task.released': (sink, { ids }) => {
    sink.add('replaysafe_task_released_total', ids.length);
  },
  'task.recovered': (sink, { ids }) => {
    sink.add('replaysafe_task_recovered_total', ids.length);
  },
  'task.fenced': (sink, { count }) => {
    sink.add('replaysafe_task_fenced_total', count);
  },
  'task.errored': (sink) => {
    sink.add('replaysafe_task_errors_total', 1);
  },

  'client.attempted': (sink, { client, method, attempt }) => {
    sink.add('replaysafe_client_tries_total', 1, { client, method, repeat: attempt > 1 ? 'yes' : 'no' });
  },
  'client.answered': (sink, { client, method, status, durationMs }) => {
    sink.add('replaysafe_client_answers_total', 1, { client, method, status: statusClass(status) });
    sink.observeMs('replaysafe_client_answer_duration_seconds', durationMs, { client, method });
  },
  'client.failed': (sink, { client, method, code }) => {
    sink.add('replaysafe_client_failures_total', 1, { client, method, code });
  },
  'client.refused': (sink, { client, reason }) => {
    sink.add('replaysafe_client_refused_total', 1, { client, reason });
  },
  'client.breaker-changed': (sink, { client, to }) => {
    sink.add('replaysafe_client_breaker_changes_total', 1, { client, to });
  },
  'client.budget-spent': (sink, { client }) => {
    sink.add('replaysafe_client_budget_spent_total', 1, { client });
  },
  'client.key-misused': (sink, { client, misuse }) => {
    sink.add('replaysafe_client_key_misuses_total', 1, { client, misuse });
  },
};

function statusClass(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}
