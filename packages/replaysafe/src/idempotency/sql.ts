/**
 * All look-ups go by `idempotency_record_pkey (key_hash)`. Isolation: READ COMMITTED, each in a statement of its own; merged
 * into one, the loser of a race would see neither the other's row nor its own (P4).
 *
 * @param schema the name of the schema, plain; it is quoted here
 */
export const idempotencySql = (schema: string) => {
  const table = `"${schema}".idempotency_record`;
  return {
    /** Outside a transaction. Expiry is judged by the database's clock. */
    read: `/* replaysafe:idempotency.read */
select fp, fp_version, state, status, headers::text as headers, body, body_omitted,
  locked_until is not null as leased,
  coalesce(expires_at <= clock_timestamp(), false) as past_retention,
  xmin::text as written_by
from ${table} where key_hash = $1`,

    /** First statement of the transaction. The try form, so that whoever waits does so without a connection. */
    lock: `/* replaysafe:idempotency.lock */ select pg_try_advisory_xact_lock($1::bigint) as locked`,

    /** Second statement, under the lock: 0 rows mean that the key has a committed record. */
    claim: `/* replaysafe:idempotency.claim */
insert into ${table} (key_hash, scope, fp, fp_version, state) values ($1, $2, $3, $4, 'running')
on conflict (key_hash) do nothing`,

    /** Last statement of ours before the check: 0 rows mean that the claim is gone, e.g. by a ROLLBACK of the handler. */
    complete: `/* replaysafe:idempotency.complete */
update ${table}
set state = 'completed', status = $2, headers = $3::jsonb, body = $4, body_omitted = $5, completed_at = clock_timestamp(),
  expires_at = clock_timestamp() + $6::double precision * interval '1 millisecond'
where key_hash = $1 and state = 'running'`,

    /** Run by the port right before COMMIT: our own row is still there (P1). */
    verify: `/* replaysafe:idempotency.verify */
select 1 as ours from ${table} where key_hash = $1 and state = 'completed'`,

    /**
     * Sweep, first statement of a batch: forgets at most $1 answers and keeps their keys. Index idempotency_record_retention, in its
     * order and only as far as the limit goes. Skips rows that somebody has locked, waits for none.
     */
    expire: `/* replaysafe:idempotency.expire */
with due as materialized (
  select key_hash from ${table}
  where state = 'completed' and expires_at <= statement_timestamp()
  order by expires_at limit $1::int for update skip locked
)
update ${table} r set state = 'expired', headers = null, body = null, body_omitted = true
from due where r.key_hash = due.key_hash`,

    /** Sweep, second statement: deletes at most $1 keys whose answers were due to be forgotten $2 ms ago. Index and locks as above. */
    forget: `/* replaysafe:idempotency.forget */
with due as materialized (
  select key_hash from ${table}
  where state = 'expired' and expires_at <= statement_timestamp() - $2::double precision * interval '1 millisecond'
  order by expires_at limit $1::int for update skip locked
)
delete from ${table} r using due where r.key_hash = due.key_hash`,
  } as const;
};
