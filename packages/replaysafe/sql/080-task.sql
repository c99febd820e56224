-- Durable tasks: one row for each operation that has to be carried out, sooner or later, with one key and one input.

create table {{schema}}.task (
  id uuid not null default {{schema}}.uuid_v7(),
  -- Which handler carries it out.
  kind text not null,
  -- The idempotency key that every try sends. One operation is one row, however often it is enqueued.
  key text not null,
  -- Byte for byte what every try is given.
  input bytea not null,
  traceparent text,
  status text not null default 'PENDING',
  claim_token uuid,
  locked_until timestamptz,
  -- Tries begun, and tries that failed: a try that a stop interrupted is given back, one whose worker died is not.
  attempts integer not null default 0,
  failures integer not null default 0,
  -- This many failures are given up on.
  max_failures integer not null,
  -- From the first claim on: how long the other side has known the key at most.
  first_attempt_at timestamptz,
  next_attempt_at timestamptz not null default clock_timestamp(),
  -- A running try cannot be called back; it is the last one.
  cancel_requested boolean not null default false,
  last_error text,
  -- What the handler returned, as JSON; null is nothing.
  result bytea,
  created_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,

  constraint task_pkey primary key (id),
  constraint task_operation unique (kind, key),
  constraint task_status_known check (status in ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  constraint task_claim check ((status = 'RUNNING') = (claim_token is not null) and (status = 'RUNNING') = (locked_until is not null)),
  constraint task_end check ((status in ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (finished_at is not null)),
  constraint task_result check (status = 'SUCCEEDED' or result is null),
  constraint task_reason check (status <> 'FAILED' or last_error is not null),
  constraint task_cancel check (not cancel_requested or status in ('RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')),
  constraint task_counts check (attempts >= 0 and failures >= 0 and max_failures > 0)
) with (
  -- Every task makes two dead versions of its row: without this the table is vacuumed when a fifth of it is dead.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_analyze_scale_factor = 0.05
);

-- Claim: the due tasks of one kind, the longest due first. Tasks that wait stand behind them and cost the claim nothing.
create index task_due on {{schema}}.task (kind, next_attempt_at, id)
  where status = 'PENDING';

-- Leases that ran out.
create index task_leased on {{schema}}.task (locked_until)
  where status = 'RUNNING';

-- Retention.
create index task_finished on {{schema}}.task (finished_at)
  where status in ('SUCCEEDED', 'CANCELLED');

create index task_failed on {{schema}}.task (finished_at)
  where status = 'FAILED';
