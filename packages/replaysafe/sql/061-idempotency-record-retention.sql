-- The sweep: answers whose time is over, and keys that were forgotten long enough ago. Rows that run are in no list.
create index idempotency_record_retention on {{schema}}.idempotency_record (state, expires_at)
  where state <> 'running';
