/** The statements of the room, for a schema name that matches `[a-z_][a-z0-9_]*`. */
export const inboxSql = (schema: string) => {
  const table = `"${schema}".processed_event`;
  return {
    /**
     * Finds out whether the table is there. Any isolation; reads no row.
     * No parameters.
     */
    present: `/* replaysafe:inbox.present */ select consumer from ${table} limit 0`,

    /**
     * Which of these events are settled, seen from outside a transaction: a committed row is a proof, its absence is none.
     * Primary key, one probe per id. READ COMMITTED (a statement of its own).
     * $1 consumer, $2 ids
     */
    settled: `/* replaysafe:inbox.settled */
      select event_id from ${table} where consumer = $1 and event_id = any($2::text[])`,

    /**
     * Makes the dedup rows of a batch: returned ids are fresh, an id that is not returned is a duplicate. The first statement
     * of its transaction and sorted, or two batches with the same ids deadlock (P13). Waits for a rival's uncommitted row,
     * bounded by lock_timeout. Primary key. READ COMMITTED: under a stricter level the conflict is an error instead.
     * $1 consumer, $2 ids, $3 attempts
     */
    claim: `/* replaysafe:inbox.claim */
      insert into ${table} (consumer, event_id, status, attempt)
      select $1, id, 'processed', attempt
      from unnest($2::text[], $3::integer[]) as batch(id, attempt)
      order by id collate "C"
      on conflict (consumer, event_id) do nothing
      returning event_id`,

    /**
     * The last statement before COMMIT: one row when every id of the batch has its dedup row, none when somebody took them
     * away (P1). Primary key. READ COMMITTED.
     * $1 consumer, $2 ids (distinct)
     */
    verify: `/* replaysafe:inbox.verify */
      select 1 as ok
      from (
        select count(*) as found from ${table} where consumer = $1 and event_id = any($2::text[])
      ) rows
      where rows.found = cardinality($2::text[])`,

    /**
     * Parks one event: no row returned means that it is settled already. Primary key. READ COMMITTED.
     * $1 consumer, $2 id, $3 attempt, $4 error code, $5 error text
     */
    park: `/* replaysafe:inbox.park */
      insert into ${table} (consumer, event_id, status, attempt, error_code, error)
      values ($1, $2, 'parked', $3, $4, $5)
      on conflict (consumer, event_id) do nothing
      returning event_id`,

    /**
     * Takes back the dedup rows of events whose handler never ran, after a handler has sent COMMIT itself and so committed them:
     * they would pass for processed. `xmin` is the proof that they are of that transaction and of no other. Primary key.
     * READ COMMITTED (a statement of its own).
     * $1 consumer, $2 ids, $3 transaction id
     */
    takeBack: `/* replaysafe:inbox.take-back */
      delete from ${table} where consumer = $1 and event_id = any($2::text[]) and xmin = ($3::xid8)::xid`,

    /**
     * Whether the database can be reached and written to, asked on a connection that no transaction holds: one row when it
     * can. No table, no parameters.
     */
    probe: `/* replaysafe:inbox.probe */ select 1 as ok where not pg_is_in_recovery()`,
  };
};

export type InboxSql = ReturnType<typeof inboxSql>;
