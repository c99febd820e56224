import { type EventName } from '../../events.js';

export interface MetricEntry {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly unit:
    | 'seconds'
    | 'events'
    | 'messages'
    | 'requests'
    | 'connections'
    | 'runs'
    | 'tries'
    | 'resources'
    | 'errors'
    | 'changes'
    | 'tasks';
  /** Each has few values: no ids, no keys, no paths, no names made up at start. */
  readonly labels: readonly string[];
  /** The event that feeds it, or the call that is asked on a scrape. */
  readonly from: EventName | 'lifecycle.traffic()' | 'outbox.status()';
  readonly help: string;
}

/** Every metric there is. Durations are in seconds, as Prometheus has them. */
export const METRICS = {
  app_shutdown_duration_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: [],
    from: 'lifecycle.stop-requested',
    help: 'Time since the stop began, live while it runs; its whole length when it has ended; 0 before.',
  },
  app_shutdown_phase_duration_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: ['phase'],
    from: 'lifecycle.phase-started',
    help: 'The same for each phase of the stop that has begun.',
  },
  replaysafe_shutdown_resources_total: {
    type: 'counter',
    unit: 'resources',
    labels: ['outcome'],
    from: 'lifecycle.resource-stopped',
    help: 'Resources by how their stop ended: stopped, failed, forced, abandoned.',
  },
  replaysafe_http_drained_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['server', 'outcome'],
    from: 'lifecycle.http-drained',
    help: 'Requests of the drain: served, cut at the deadline, timed-out half-way in, late after our FIN.',
  },
  replaysafe_http_connections: {
    type: 'gauge',
    unit: 'connections',
    labels: ['server'],
    from: 'lifecycle.traffic()',
    help: 'Open connections of a registered server.',
  },
  replaysafe_http_requests_in_flight: {
    type: 'gauge',
    unit: 'requests',
    labels: ['server'],
    from: 'lifecycle.traffic()',
    help: 'Requests whose response is not complete and sent.',
  },
  replaysafe_worker_runs_total: {
    type: 'counter',
    unit: 'runs',
    labels: ['worker', 'outcome'],
    from: 'lifecycle.worker-ran',
    help: 'Iterations of a worker: ok or failed.',
  },
  replaysafe_worker_run_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['worker'],
    from: 'lifecycle.worker-ran',
    help: 'Length of an iteration.',
  },
  replaysafe_worker_leases_lost_total: {
    type: 'counter',
    unit: 'runs',
    labels: ['worker'],
    from: 'lifecycle.lease-lost',
    help: 'Iterations whose lease ran out or was taken over: a lease is too short, or a process was paused.',
  },

  replaysafe_outbox_enqueued_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.enqueued',
    help: 'Events written, in transactions that may still have been rolled back.',
  },
  replaysafe_outbox_claimed_total: {
    type: 'counter',
    unit: 'events',
    labels: ['mode'],
    from: 'outbox.claimed',
    help: 'Events taken by a relay of this process.',
  },
  replaysafe_outbox_published_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.published',
    help: 'Events for which the broker has answered.',
  },
  replaysafe_outbox_publish_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: [],
    from: 'outbox.published',
    help: 'From handing a batch to the broker client to its answer.',
  },
  replaysafe_outbox_marked_total: {
    type: 'counter',
    unit: 'events',
    labels: ['mode'],
    from: 'outbox.marked',
    help: 'Events marked as published, durably.',
  },
  replaysafe_outbox_failed_total: {
    type: 'counter',
    unit: 'events',
    labels: ['outcome'],
    from: 'outbox.failed',
    help: 'Tries that the broker did not accept; they are repeated.',
  },
  replaysafe_outbox_dead_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.dead',
    help: 'Events given up on. Alert on any.',
  },
  replaysafe_outbox_fenced_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.fenced',
    help: 'Marks refused because another relay had claimed the event since: a lease is too short, or a relay was paused.',
  },
  replaysafe_outbox_released_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.released',
    help: 'Claims given back by a graceful stop.',
  },
  replaysafe_outbox_recovered_total: {
    type: 'counter',
    unit: 'events',
    labels: [],
    from: 'outbox.recovered',
    help: 'Claims of a dead relay that are pending again.',
  },
  replaysafe_outbox_errors_total: {
    type: 'counter',
    unit: 'errors',
    labels: [],
    from: 'outbox.errored',
    help: 'Iterations of a relay that failed; it backs off and goes on.',
  },
  replaysafe_outbox_events: {
    type: 'gauge',
    unit: 'events',
    labels: ['status'],
    from: 'outbox.status()',
    help: 'Rows of the outbox by status: pending, publishing, dead. NaN while the database does not answer.',
  },
  replaysafe_outbox_oldest_open_age_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: [],
    from: 'outbox.status()',
    help: 'Age of the oldest event that is due and not published: the lag of the relay. NaN while the database does not answer.',
  },

  replaysafe_inbox_received_total: {
    type: 'counter',
    unit: 'messages',
    labels: ['consumer', 'topic'],
    from: 'inbox.received',
    help: 'Messages delivered by the broker, repeats included.',
  },
  replaysafe_inbox_committed_total: {
    type: 'counter',
    unit: 'events',
    labels: ['consumer', 'topic'],
    from: 'inbox.committed',
    help: 'Events whose effect is committed.',
  },
  replaysafe_inbox_duplicates_total: {
    type: 'counter',
    unit: 'events',
    labels: ['consumer', 'topic'],
    from: 'inbox.duplicate',
    help: 'Events dropped because their effect was committed before.',
  },
  replaysafe_inbox_parked_total: {
    type: 'counter',
    unit: 'events',
    labels: ['consumer', 'topic'],
    from: 'inbox.parked',
    help: 'Events given up on, with a dead letter written. Alert on any.',
  },
  replaysafe_inbox_failed_total: {
    type: 'counter',
    unit: 'errors',
    labels: ['consumer', 'topic', 'cause'],
    from: 'inbox.failed',
    help: 'Failed tries of a batch or an event; cause is handler or infrastructure.',
  },

  replaysafe_idempotency_executed_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['status'],
    from: 'idempotency.executed',
    help: 'Keyed requests executed, effect and answer committed.',
  },
  replaysafe_idempotency_replayed_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['status'],
    from: 'idempotency.replayed',
    help: 'Requests answered with a stored answer.',
  },
  replaysafe_idempotency_discarded_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['status'],
    from: 'idempotency.discarded',
    help: 'Requests whose handler ran and whose answer is not kept.',
  },
  replaysafe_idempotency_refused_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['code'],
    from: 'idempotency.refused',
    help: 'Requests answered with a problem and not executed, by error code.',
  },
  replaysafe_idempotency_wait_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: [],
    from: 'idempotency.waited',
    help: 'How long a duplicate waited for the first request to end.',
  },
  replaysafe_idempotency_swept_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['what'],
    from: 'idempotency.swept',
    help: 'Answers forgotten and keys deleted after their time.',
  },

  replaysafe_task_enqueued_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['kind'],
    from: 'task.enqueued',
    help: 'Tasks written, in transactions that may still have been rolled back.',
  },
  replaysafe_task_succeeded_total: {
    type: 'counter',
    unit: 'tasks',
    labels: [],
    from: 'task.succeeded',
    help: 'Tasks that are done.',
  },
  replaysafe_task_failed_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['kind'],
    from: 'task.failed',
    help: 'Tries that failed and are repeated.',
  },
  replaysafe_task_given_up_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['kind', 'reason'],
    from: 'task.given-up',
    help: 'Tasks given up on. Alert on any.',
  },
  replaysafe_task_released_total: {
    type: 'counter',
    unit: 'tasks',
    labels: [],
    from: 'task.released',
    help: 'Tasks given back by a graceful stop.',
  },
  replaysafe_task_recovered_total: {
    type: 'counter',
    unit: 'tasks',
    labels: [],
    from: 'task.recovered',
    help: 'Claims of a dead worker that were ended.',
  },
  replaysafe_task_fenced_total: {
    type: 'counter',
    unit: 'tasks',
    labels: [],
    from: 'task.fenced',
    help: 'Ends refused because another worker had claimed the task since: a lease is too short, or a worker was paused.',
  },
  replaysafe_task_errors_total: {
    type: 'counter',
    unit: 'errors',
    labels: [],
    from: 'task.errored',
    help: 'Iterations of a worker that failed; it backs off and goes on.',
  },

  replaysafe_client_tries_total: {
    type: 'counter',
    unit: 'tries',
    labels: ['client', 'method', 'repeat'],
    from: 'client.attempted',
    help: 'Tries sent to a remote system; repeat says whether it was a first try or a repeated one.',
  },
  replaysafe_client_answers_total: {
    type: 'counter',
    unit: 'tries',
    labels: ['client', 'method', 'status'],
    from: 'client.answered',
    help: 'Answers of a remote system by class of their status.',
  },
  replaysafe_client_answer_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['client', 'method'],
    from: 'client.answered',
    help: 'Length of a try that was answered.',
  },
  replaysafe_client_failures_total: {
    type: 'counter',
    unit: 'tries',
    labels: ['client', 'method', 'code'],
    from: 'client.failed',
    help: 'Tries that ended without an answer, by error code.',
  },
  replaysafe_client_refused_total: {
    type: 'counter',
    unit: 'tries',
    labels: ['client', 'reason'],
    from: 'client.refused',
    help: 'Tries that were not sent: reason is breaker (it is open) or bulkhead (too many calls run and wait).',
  },
  replaysafe_client_breaker_changes_total: {
    type: 'counter',
    unit: 'changes',
    labels: ['client', 'to'],
    from: 'client.breaker-changed',
    help: 'Changes of a circuit breaker, by the state it came to. Alert on open.',
  },
  replaysafe_client_budget_spent_total: {
    type: 'counter',
    unit: 'tries',
    labels: ['client'],
    from: 'client.budget-spent',
    help: 'Tries that were not repeated because the retry budget is spent.',
  },
  replaysafe_client_key_misuses_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['client', 'misuse'],
    from: 'client.key-misused',
    help: 'Keys made inside of what is repeated, or used for two things; counted with warnOnKeyMisuse only.',
  },
} as const satisfies Readonly<Record<string, MetricEntry>>;

export type MetricName = keyof typeof METRICS;
