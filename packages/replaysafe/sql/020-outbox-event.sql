-- The outbox: one row for each event, written in the transaction of the business change and published by a relay.

create table {{schema}}.outbox_event (
  -- The event id that consumers dedup by. It is the primary key, not seq: a sequence that has gone backwards (restore,
  -- failover) must not make the inserts of the business transactions fail.
  id uuid not null default {{schema}}.uuid_v7(),
  -- Order of writing.
  seq bigint not null generated always as identity,
  topic text not null,
  event_type text not null,
  aggregate_type text,
  -- The key of the message; null promises no order.
  aggregate_id text,
  -- Byte for byte what is published; null is a message without a value (a tombstone).
  payload bytea,
  content_type text,
  headers jsonb not null default '{}',
  status text not null default 'PENDING',
  claim_token uuid,
  locked_until timestamptz,
  -- Tries begun, and tries that failed: a try that a stop interrupted is given back, one whose relay died is not.
  attempts integer not null default 0,
  failures integer not null default 0,
  -- Null is due at once; else not before this moment (availableAt, or the back-off after a failure).
  next_attempt_at timestamptz,
  -- Since when, without a break, the broker has refused the topic (unknown or forbidden).
  refused_since timestamptz,
  last_error text,
  created_at timestamptz not null default clock_timestamp(),
  published_at timestamptz,
  -- Divides the work between relays; says nothing about order.
  shard smallint not null
    generated always as ((hashtextextended(coalesce(aggregate_id, id::text), 0) & 31)::smallint) stored,

  constraint outbox_event_pkey primary key (id),
  constraint outbox_event_status_known check (status in ('PENDING', 'PUBLISHING', 'PUBLISHED', 'DEAD')),
  -- A published row keeps the token it was published under, so that an interrupted COMMIT can be looked up.
  constraint outbox_event_claim check (
    case status
      when 'PUBLISHING' then claim_token is not null and locked_until is not null
      when 'PUBLISHED' then claim_token is not null and locked_until is null
      else claim_token is null and locked_until is null
    end
  ),
  constraint outbox_event_published check ((status = 'PUBLISHED') = (published_at is not null)),
  constraint outbox_event_due check (status in ('PENDING', 'PUBLISHING') or next_attempt_at is null),
  constraint outbox_event_reason check (status <> 'DEAD' or last_error is not null),
  constraint outbox_event_counts check (attempts >= 0 and failures between 0 and attempts)
) with (
  -- Every event makes one or two dead versions of its row: without this the table is vacuumed when a fifth of it is dead.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05
);

-- Claim, lane of the rows that are due at once: the index is the order of the claim. Rows that wait (a back-off, an
-- availableAt) are in another lane, so that any number of them costs the claim nothing.
create index outbox_event_fresh on {{schema}}.outbox_event (seq)
  where status = 'PENDING' and next_attempt_at is null;

-- Claim, lane of the rows that become due at a moment of their own.
create index outbox_event_waiting on {{schema}}.outbox_event (next_attempt_at, seq)
  where status = 'PENDING' and next_attempt_at is not null;

-- Leases that ran out.
create index outbox_event_leased on {{schema}}.outbox_event (locked_until)
  where status = 'PUBLISHING';

-- "Is there an earlier open row of this key?"
create index outbox_event_open_key on {{schema}}.outbox_event (aggregate_id, seq)
  where status <> 'PUBLISHED' and aggregate_id is not null;

create index outbox_event_dead on {{schema}}.outbox_event (seq)
  where status = 'DEAD';
