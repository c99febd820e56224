-- The record that an event's effect is committed, written in the transaction of the effect. It is the truth; offsets are an
-- optimisation.
--
-- The id compares by bytes (collation "C"): every writer sorts a batch the same way, whatever the database's locale, so that
-- two batches with the same ids cannot deadlock; and ranges of time-ordered ids are ranges of this column, which is part of
-- the primary key, so that the table can become one partitioned by event_id without losing exact uniqueness.
create table {{schema}}.processed_event (
  consumer     text             not null,
  event_id     text collate "C" not null,
  status       text             not null,
  attempt      integer          not null default 1,
  processed_at timestamptz      not null default clock_timestamp(),
  error_code   text,
  error        text,
  constraint processed_event_pk primary key (consumer, event_id),
  constraint processed_event_consumer_ck check (consumer <> ''),
  -- Within what an index entry can hold.
  constraint processed_event_event_id_ck check (length(event_id) between 1 and 255),
  constraint processed_event_attempt_ck check (attempt >= 1),
  -- processed: the effect is committed. parked: given up on, the dead letter was written by the same transaction.
  constraint processed_event_status_ck check (
    (status = 'processed' and error_code is null and error is null)
    or (status = 'parked' and error_code is not null)
  )
);

comment on table {{schema}}.processed_event is 'replaysafe inbox: one row per consumer and event whose effect is committed';
