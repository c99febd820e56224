-- One row for each (scope, key) that a request was executed with. The key itself is never stored: `key_hash` is SHA-256 over
-- the length-prefixed scope and key, so that two tenants never meet and a dump of the table holds no key.
create table {{schema}}.idempotency_record (
  key_hash bytea not null,
  -- Which tenant or principal, for people who look; not part of any look-up.
  scope text not null,
  -- SHA-256 of the request the key was first used with, and the version of the recipe that made it.
  fp bytea not null,
  fp_version smallint not null,
  state text not null,

  -- Ownership of a running operation that is committed before it ends: the fence (a takeover raises `epoch`), who holds it,
  -- until when by the database clock, and where to go on. An operation that is one transaction leaves them as they are.
  epoch integer not null default 1,
  owner text,
  locked_until timestamptz,
  recovery_point text,

  -- The answer. An empty body is zero bytes; null is "there was one and it was not stored", said again by `body_omitted`.
  status smallint,
  headers jsonb,
  body bytea,
  body_omitted boolean not null default false,

  created_at timestamptz not null default clock_timestamp(),
  completed_at timestamptz,
  -- From this moment on the answer may be forgotten; the key is not.
  expires_at timestamptz,

  constraint idempotency_record_pkey primary key (key_hash),
  constraint idempotency_record_hashes check (octet_length(key_hash) = 32 and octet_length(fp) = 32),
  constraint idempotency_record_state check (state in ('running', 'completed', 'expired')),
  constraint idempotency_record_epoch check (epoch > 0),
  constraint idempotency_record_lease check ((owner is null) = (locked_until is null)),
  constraint idempotency_record_running check (
    state <> 'running'
    or (status is null and headers is null and body is null and not body_omitted and completed_at is null and expires_at is null)
  ),
  constraint idempotency_record_completed check (
    state <> 'completed'
    or (
      -- IS NOT NULL by itself: a check that comes out as null is passed.
      status is not null and status between 200 and 499 and headers is not null and body_omitted = (body is null)
      and completed_at is not null and expires_at is not null and locked_until is null
    )
  ),
  constraint idempotency_record_expired check (
    state <> 'expired'
    or (headers is null and body is null and completed_at is not null and expires_at is not null and locked_until is null)
  )
);
