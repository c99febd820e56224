/**
 * The statements of the lifecycle's one table. Isolation: READ COMMITTED. All look-ups go by `worker_lease_pkey (name)`.
 * Whatever changes a claim names its owner and its epoch, columns of the row being written (P10).
 *
 * @param schema the name of the schema, plain; it is quoted here
 */
export const leaseSql = (schema: string) => {
  const table = `"${schema}".worker_lease`;
  const inMs = (parameter: string): string => `${parameter}::double precision * interval '1 millisecond'`;
  const msUntil = (moment: string): string =>
    `(extract(epoch from ${moment} - clock_timestamp()) * 1000)::double precision`;
  const mine = 'name = $1 and owner = $2 and epoch = $3::bigint';

  return {
    /** First statement of a claim. Locks nothing, so that pods that only look never wait for one that works. */
    look: `/* replaysafe:worker-lease.look */
select owner, epoch::text as epoch, failures, ${msUntil('leased_until')} as held_ms,
  ${msUntil(`greatest(last_finished_at + ${inMs('$2')}, not_before)`)} as due_in_ms,
  (extract(epoch from slot) * 1000)::double precision as slot_ms
from ${table} where name = $1`,

    /** Second statement where there is no row: 0 rows mean that another pod was first. */
    create: `/* replaysafe:worker-lease.create */
insert into ${table} (name, owner, epoch, leased_until, slot)
values ($1, $2, 1, clock_timestamp() + ${inMs('$3')}, to_timestamp($4::double precision / 1000))
on conflict (name) do nothing`,

    /** Instead of it, where the first run shall not be now: a row that nobody holds. */
    postpone: `/* replaysafe:worker-lease.postpone */
insert into ${table} (name, epoch, not_before) values ($1, 1, clock_timestamp() + ${inMs('$2')})
on conflict (name) do nothing`,

    /**
     * Second statement where there is one: only if nobody has claimed it since the look ($5), nor renewed it. Changes a key,
     * and so waits for every transaction that has checked the epoch before (worker_lease_epoch_is_key).
     */
    take: `/* replaysafe:worker-lease.take */
update ${table}
set owner = $2, epoch = epoch + 1, leased_until = clock_timestamp() + ${inMs('$3')},
  slot = greatest(slot, to_timestamp($4::double precision / 1000))
where name = $1 and epoch = $5::bigint and (owner is null or owner = $2 or leased_until <= clock_timestamp())`,

    /** Changes no key: passes a transaction of our own that has checked the epoch. 0 rows: the lease is another's. */
    renew: `/* replaysafe:worker-lease.renew */
update ${table} set leased_until = clock_timestamp() + ${inMs('$4')} where ${mine}`,

    /** The run has ended. 0 rows: the lease is another's, who says when it ended. */
    release: `/* replaysafe:worker-lease.release */
update ${table}
set owner = null, leased_until = null, last_finished_at = clock_timestamp(), failures = $4,
  not_before = clock_timestamp() + ${inMs('$5')}
where ${mine}`,

    /** The run has not ended and is given up on: the lease has run out now, anybody may claim it. */
    surrender: `/* replaysafe:worker-lease.surrender */
update ${table} set leased_until = clock_timestamp() where ${mine}`,

    /**
     * In the run's own transaction, before its writes. Holds a claim of the same worker off until that transaction has ended;
     * behind a claim under way it waits and then finds no row.
     */
    check: `/* replaysafe:worker-lease.check */
select 1 as ours from ${table} where ${mine} for key share`,
  } as const;
};
