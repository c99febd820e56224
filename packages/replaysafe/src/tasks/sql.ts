export type TaskSql = ReturnType<typeof taskSql>;

/** Milliseconds as a number, so that no driver's reading of timestamps matters. */
const epochMs = (column: string): string => `(extract(epoch from ${column}) * 1000)::float8`;

/** What is told of a task. */
const TASK = `t.id::text as id, t.kind, t.key, t.status, t.attempts, t.failures, t.max_failures, t.last_error,
  t.cancel_requested, t.input, t.result, ${epochMs('t.next_attempt_at')} as next_attempt_ms,
  ${epochMs('t.created_at')} as created_ms, ${epochMs('t.finished_at')} as finished_ms`;

/**
 * The statements of the durable tasks, for a quoted schema name. All run under READ COMMITTED. Lists are one text
 * parameter (a PostgreSQL array or JSON), because drivers disagree on how an array is sent.
 *
 * Moments that an index is compared with are `statement_timestamp()`, which the planner can use; moments that are
 * written are `clock_timestamp()`.
 */
export function taskSql(schema: string) {
  const table = `${schema}.task`;

  return {
    /**
     * One task: $1 kind, $2 key, $3 input, $4 traceparent, $5 not before (null: now), $6 most failures. No row where the
     * operation is there already. Index task_operation; in the caller's transaction.
     */
    enqueue: `/* replaysafe:task.enqueue */
insert into ${table} (kind, key, input, traceparent, next_attempt_at, max_failures)
values ($1::text, $2::text, $3::bytea, $4::text, coalesce($5::timestamptz, clock_timestamp()), $6::int)
on conflict (kind, key) do nothing
returning id::text as id`,

    /** The operation that is there already: $1 kind, $2 key, $3 the input that was to be written. Index task_operation. */
    findEnqueued: `/* replaysafe:task.find-enqueued */
select t.id::text as id, t.input = $3::bytea as same from ${table} t where t.kind = $1::text and t.key = $2::text`,

    /**
     * Due tasks of the kinds $1, at most $2, under the claim $3, for $4 milliseconds. Index task_due, once for each kind
     * and only as far as the limit goes; locked rows are skipped, not waited for. Index task_pkey for the update.
     */
    claim: `/* replaysafe:task.claim */
with due as materialized (
  select d.id from unnest($1::text::text[]) k(kind) cross join lateral (
    select t.id, t.next_attempt_at from ${table} t
    where t.kind = k.kind and t.status = 'PENDING' and t.next_attempt_at <= statement_timestamp()
    order by t.next_attempt_at, t.id
    limit $2::int for update skip locked
  ) d
  order by d.next_attempt_at
  limit $2::int
)
update ${table} t
set status = 'RUNNING', claim_token = $3::uuid, attempts = t.attempts + 1,
  first_attempt_at = coalesce(t.first_attempt_at, clock_timestamp()),
  locked_until = clock_timestamp() + $4::int * interval '1 millisecond'
where t.id = any(array(select id from due)) and t.status = 'PENDING'
returning t.id::text as id, t.kind, t.key, t.input, t.traceparent, t.attempts, t.failures, t.max_failures,
  (extract(epoch from clock_timestamp() - t.first_attempt_at) * 1000)::float8 as known_ms`,

    /**
     * Ends of tries, $1 JSON rows, each only where its own claim still holds it (P10). A failed try of a task that is to
     * be cancelled is its last. Index task_pkey.
     */
    settle: `/* replaysafe:task.settle */
update ${table} t
set status = case when s.status = 'PENDING' and t.cancel_requested then 'CANCELLED' else s.status end,
  claim_token = null, locked_until = null,
  attempts = t.attempts - s.given_back,
  failures = t.failures + s.failed,
  last_error = coalesce(s.error, case when s.status = 'SUCCEEDED' then null else t.last_error end),
  result = decode(s.result, 'base64'),
  next_attempt_at = case when s.delay_ms is null then t.next_attempt_at
    else clock_timestamp() + s.delay_ms * interval '1 millisecond' end,
  finished_at = case when s.status = 'PENDING' and not t.cancel_requested then null else clock_timestamp() end
from json_to_recordset($1::text::json)
  as s(id uuid, token uuid, status text, given_back int, failed int, delay_ms int, error text, result text)
where t.id = s.id and t.status = 'RUNNING' and t.claim_token = s.token
returning t.id::text as id, t.status`,

    /** Longer leases for what is still running: $1 JSON rows of id and token, $2 milliseconds. Index task_pkey. */
    renew: `/* replaysafe:task.renew */
update ${table} t
set locked_until = clock_timestamp() + $2::int * interval '1 millisecond'
from json_to_recordset($1::text::json) as r(id uuid, token uuid)
where t.id = r.id and t.status = 'RUNNING' and t.claim_token = r.token
returning t.id::text as id`,

    /**
     * Claims whose lease ran out, at most $1. Their try counts as failed, so that an input that kills its worker does
     * not come back for ever. Index task_leased; the locked row is checked again by the server, so a worker that has
     * just settled or renewed it keeps it.
     */
    recover: `/* replaysafe:task.recover */
with expired as materialized (
  select t.id from ${table} t
  where t.status = 'RUNNING' and t.locked_until < statement_timestamp()
  order by t.locked_until
  limit $1::int for update skip locked
)
update ${table} t
set status = n.status, claim_token = null, locked_until = null, failures = t.failures + 1,
  last_error = 'the lease ran out: its worker died, was frozen, or could not reach the database',
  next_attempt_at = clock_timestamp(),
  finished_at = case when n.status = 'PENDING' then null else clock_timestamp() end
from (
  select e.id, case when x.cancel_requested then 'CANCELLED' when x.failures + 1 >= x.max_failures then 'FAILED'
    else 'PENDING' end as status
  from expired e join ${table} x on x.id = e.id
) n
where t.id = n.id and t.status = 'RUNNING' and t.locked_until < statement_timestamp()
returning t.id::text as id, t.kind, t.status`,

    /** By id $1. Index task_pkey. */
    get: `/* replaysafe:task.get */
select ${TASK} from ${table} t where t.id = $1::uuid`,

    /** By operation: $1 kind, $2 key. Index task_operation. */
    find: `/* replaysafe:task.find */
select ${TASK} from ${table} t where t.kind = $1::text and t.key = $2::text`,

    /** The newest tasks, of status $1 and kind $2 where they are not null, at most $3. Reads backwards along task_pkey. */
    list: `/* replaysafe:task.list */
select ${TASK} from ${table} t
where ($1::text is null or t.status = $1::text) and ($2::text is null or t.kind = $2::text)
order by t.id desc limit $3::int`,

    /** By id $1: waiting tasks at once, a running one after its try. Index task_pkey. */
    cancel: `/* replaysafe:task.cancel */
update ${table} t
set status = case t.status when 'PENDING' then 'CANCELLED' else t.status end,
  cancel_requested = t.status = 'RUNNING' or t.cancel_requested,
  finished_at = case t.status when 'PENDING' then clock_timestamp() else t.finished_at end
where t.id = $1::uuid and t.status in ('PENDING', 'RUNNING')
returning t.status`,

    /** FAILED tasks of the ids $1, or all of the kind $2, at most $3: once more, with the same key. Index task_failed. */
    redrive: `/* replaysafe:task.redrive */
with chosen as materialized (
  select t.id from ${table} t
  where t.status = 'FAILED' and ($1::text is null or t.id = any($1::text::uuid[])) and ($2::text is null or t.kind = $2::text)
  order by t.finished_at limit $3::int for update skip locked
)
update ${table} t
set status = 'PENDING', failures = 0, next_attempt_at = clock_timestamp(), finished_at = null, cancel_requested = false
where t.id = any(array(select id from chosen)) and t.status = 'FAILED'
returning t.id::text as id`,

    /** SUCCEEDED and CANCELLED tasks that ended $1 milliseconds ago, at most $2. Index task_finished. */
    prune: `/* replaysafe:task.prune */
delete from ${table} t
where t.id = any(array(
  select f.id from ${table} f
  where f.status in ('SUCCEEDED', 'CANCELLED')
    and f.finished_at < statement_timestamp() - $1::float8 * interval '1 millisecond'
  order by f.finished_at limit $2::int for update skip locked
))`,

    /** Counts of what is open or failed, and the age of the oldest task that is due. One partial index each. */
    status: `/* replaysafe:task.status */
select
  (select count(*) from ${table} t where t.status = 'PENDING')::text as pending,
  (select count(*) from ${table} t where t.status = 'RUNNING')::text as running,
  (select count(*) from ${table} t where t.status = 'FAILED')::text as failed,
  greatest(0, floor(extract(epoch from clock_timestamp() - (
    select min(t.next_attempt_at) from ${table} t where t.status = 'PENDING'
  )) * 1000))::float8 as oldest_ms`,
  };
}
