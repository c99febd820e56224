import { type MetricEntry } from './entry.js';

/** The stop, the servers and the workers of a process. */
export const PROCESS_METRICS = {
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
} as const satisfies Readonly<Record<string, MetricEntry>>;
