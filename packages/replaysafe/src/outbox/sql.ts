import type { RelayModeName } from '../events.js';

export type OutboxSql = ReturnType<typeof outboxSql>;

/** What a relay needs of a row. Headers come as text, so that no driver's reading of jsonb matters. */
const CLAIMED = `e.id::text as id, e.seq::text as seq, e.topic, e.event_type, e.aggregate_type, e.aggregate_id, e.payload,
  e.content_type, e.headers::text as headers, e.failures,
  (extract(epoch from clock_timestamp() - e.refused_since) * 1000)::float8 as refused_ms`;

/**
 * The statements of the outbox, for a quoted schema name. All run under READ COMMITTED. Lists are one text parameter
 * (a PostgreSQL array or JSON), because drivers disagree on how an array is sent.
 *
 * Moments that an index is compared with are `statement_timestamp()`, which the planner can use; moments that are
 * written are `clock_timestamp()`.
 */
export function outboxSql(schema: string) {
  const table = `${schema}.outbox_event`;
  const uuid = `${schema}.uuid_v7()`;
  const columns =
    '(id, topic, event_type, aggregate_type, aggregate_id, payload, content_type, headers, next_attempt_at)';

  /**
   * The rows of one claim: at most $1, locked, none that another relay has locked.
   * Indexes outbox_event_fresh and outbox_event_waiting, both read in their own order and only as far as the limit goes:
   * no sort. $2 is the share of the batch that rows due at once keep while rows of the other lane are due as well, so
   * that neither lane starves. The inner limit is a number the planner knows, the outer one is not (it would then guess
   * a tenth of the table); locks are taken only for rows that pass both.
   */
  const lanes = `waiting as materialized (
    select w.* from (
      select e.* from ${table} e
      where e.status = 'PENDING' and e.next_attempt_at is not null and e.next_attempt_at <= statement_timestamp()
      order by e.next_attempt_at, e.seq
      limit $1::int for update skip locked
    ) w
    limit $1::int - (
      select count(*) from (
        select from ${table} e where e.status = 'PENDING' and e.next_attempt_at is null order by e.seq limit $2::int
      ) f
    )
  ), fresh as materialized (
    select f.* from (
      select e.* from ${table} e
      where e.status = 'PENDING' and e.next_attempt_at is null
      order by e.seq
      limit $1::int for update skip locked
    ) f
    limit $1::int - (select count(*) from waiting)
  )`;

  /** Whose row it still is: the row's own columns say it, never another row (P10). */
  const owned: Record<RelayModeName, string> = {
    // Locked by this very transaction since the claim.
    'single-phase': `e.status = 'PENDING'`,
    'two-phase': `e.status = 'PUBLISHING' and e.claim_token = $2::uuid`,
  };
  // Two-phase counts a try when it claims, single-phase when it records the outcome.
  const attempts: Record<RelayModeName, string> = {
    'single-phase': 'e.attempts + 1',
    'two-phase': 'e.attempts',
  };

  const enqueueOne = (onConflict: string) => `/* replaysafe:outbox.enqueue */
insert into ${table} ${columns}
values (coalesce($1::uuid, ${uuid}), $2::text, $3::text, $4::text, $5::text, $6::bytea, $7::text,
  coalesce($8::text::jsonb, '{}'), $9::timestamptz)
${onConflict}
returning id::text as id`;

  // Ids are made before the insert, so that the answer has the order of the events; they get their seq in that order.
  const enqueueMany = (onConflict: string) => `/* replaysafe:outbox.enqueue-many */
with event as materialized (
  select e.n, coalesce(e.id, ${uuid}) as id, e.topic, e.event_type, e.aggregate_type, e.aggregate_id,
    decode(e.payload, 'base64') as payload, e.content_type, coalesce(e.headers, '{}') as headers, e.next_attempt_at
  from json_to_recordset($1::text::json) as e(n int, id uuid, topic text, event_type text, aggregate_type text,
    aggregate_id text, payload text, content_type text, headers jsonb, next_attempt_at timestamptz)
), inserted as (
  insert into ${table} ${columns}
  select id, topic, event_type, aggregate_type, aggregate_id, payload, content_type, headers, next_attempt_at
  from event order by n
  ${onConflict}
)
select id::text as id from event order by n`;

  const ignoreDuplicate = 'on conflict (id) do nothing';

  return {
    /** Index outbox_event_pkey. In the caller's transaction, under the caller's isolation level. */
    enqueue: {
      refuse: { one: enqueueOne(''), many: enqueueMany('') },
      ignore: { one: enqueueOne(ignoreDuplicate), many: enqueueMany(ignoreDuplicate) },
    },

    /** Single-phase: the rows stay locked until the transaction ends. */
    lock: `/* replaysafe:outbox.lock */
with ${lanes}
select ${CLAIMED} from (select * from waiting union all select * from fresh) e`,

    /**
     * Two-phase: $3 the claim token, $4 the lease in milliseconds. Index outbox_event_pkey for the update; the array is
     * computed once, so that the limit cannot be run again by the planner's choice of a join.
     */
    claim: `/* replaysafe:outbox.claim */
with ${lanes}
update ${table} e
set status = 'PUBLISHING', claim_token = $3::uuid, attempts = e.attempts + 1,
  locked_until = clock_timestamp() + $4::int * interval '1 millisecond'
where e.id = any(array(select id from waiting union all select id from fresh)) and e.status = 'PENDING'
returning ${CLAIMED}`,

    /**
     * Stored rows, $1 ids, $2 the claim token. Index outbox_event_pkey. In two-phase a row that this claim has marked
     * already answers too: a mark whose COMMIT was interrupted is repeated.
     */
    markPublished: (mode: RelayModeName) => `/* replaysafe:outbox.mark-published */
update ${table} e
set status = 'PUBLISHED', claim_token = $2::uuid, locked_until = null, next_attempt_at = null, refused_since = null,
  attempts = ${attempts[mode]}, published_at = coalesce(e.published_at, clock_timestamp())
where e.id = any($1::text::uuid[])
  and (${owned[mode]} or (e.status = 'PUBLISHED' and e.claim_token = $2::uuid))
returning e.id::text as id`,

    /** Failed tries, $1 JSON rows; back to PENDING with a delay, or DEAD. Index outbox_event_pkey. */
    markFailed: (mode: RelayModeName) => `/* replaysafe:outbox.mark-failed */
update ${table} e
set status = f.status, claim_token = null, locked_until = null, attempts = ${attempts[mode]}, failures = e.failures + 1,
  refused_since = case when f.refused then coalesce(e.refused_since, clock_timestamp()) end,
  last_error = f.error,
  next_attempt_at = case when f.status = 'PENDING' then clock_timestamp() + f.delay_ms * interval '1 millisecond' end
from json_to_recordset($1::text::json) as f(id uuid, status text, delay_ms int, refused boolean, error text)
where e.id = f.id and ${owned[mode]}${mode === 'single-phase' ? ' and $2::uuid is not null' : ''}
returning e.id::text as id`,

    /** Unpublished claims, $1 ids, $2 the claim token: as if they had never been claimed. Index outbox_event_pkey. */
    release: `/* replaysafe:outbox.release */
update ${table} e
set status = 'PENDING', claim_token = null, locked_until = null, attempts = e.attempts - 1
where e.id = any($1::text::uuid[]) and ${owned['two-phase']}
returning e.id::text as id`,

    /** $1 ids, $2 the claim token, $3 the lease in milliseconds. Index outbox_event_pkey. */
    renew: `/* replaysafe:outbox.renew */
update ${table} e
set locked_until = clock_timestamp() + $3::int * interval '1 millisecond'
where e.id = any($1::text::uuid[]) and ${owned['two-phase']}
returning e.id::text as id`,

    /**
     * Claims whose lease ran out, at most $1. Index outbox_event_leased. The locked row is checked again by the
     * server, so a relay that has just marked or renewed it keeps it; rows being marked are skipped, not waited for.
     */
    recover: `/* replaysafe:outbox.recover */
with expired as materialized (
  select e.id from ${table} e
  where e.status = 'PUBLISHING' and e.locked_until < statement_timestamp()
  order by e.locked_until
  limit $1::int for update skip locked
)
update ${table} e
set status = 'PENDING', claim_token = null, locked_until = null
where e.id = any(array(select id from expired)) and e.status = 'PUBLISHING' and e.locked_until < statement_timestamp()
returning e.id::text as id`,

    /** Which of the rows $1 were published under the claim $2. Index outbox_event_pkey. */
    findMarked: `/* replaysafe:outbox.find-marked */
select e.id::text as id from ${table} e
where e.id = any($1::text::uuid[]) and e.status = 'PUBLISHED' and e.claim_token = $2::uuid`,

    /** Reads the whole table: nothing but a count of them needs an index over published rows. */
    countPublished: `/* replaysafe:outbox.count-published */
select count(*)::text as published from ${table} e where e.status = 'PUBLISHED'`,

    /**
     * Counts by status and the age of the oldest row that could have been published. One partial index each: the
     * published rows, however many, are not looked at.
     */
    status: `/* replaysafe:outbox.status */
select (fresh.n + waiting.n)::text as pending, leased.n::text as publishing, dead.n::text as dead,
  greatest(0, floor(extract(epoch from
    clock_timestamp() - least(fresh.oldest, waiting.oldest, leased.oldest)) * 1000))::float8 as oldest_ms
from
  (select count(*) as n, (select f.created_at from ${table} f
     where f.status = 'PENDING' and f.next_attempt_at is null order by f.seq limit 1) as oldest
   from ${table} e where e.status = 'PENDING' and e.next_attempt_at is null) fresh,
  (select count(*) as n,
     min(e.created_at) filter (where e.failures > 0 or e.next_attempt_at <= statement_timestamp()) as oldest
   from ${table} e where e.status = 'PENDING' and e.next_attempt_at is not null) waiting,
  (select count(*) as n, min(e.created_at) as oldest from ${table} e where e.status = 'PUBLISHING') leased,
  (select count(*) as n from ${table} e where e.status = 'DEAD') dead`,
  };
}
