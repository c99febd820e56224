/** Reads of the ledger. Whole tables: they hold one run. */
export const demoSql = {
  orders: `/* shop:ledger.orders */ select id, customer_id, amount_minor from customer_order`,
  events: `/* shop:ledger.events */
    select count(*) filter (where status = 'PUBLISHED')::int as published,
           count(*) filter (where status in ('PENDING', 'PUBLISHING'))::int as open,
           count(*) filter (where status = 'DEAD')::int as dead
      from replaysafe.outbox_event where topic = $1`,
  charges: `/* shop:ledger.charges */ select order_id, amount_minor from charge`,
  receipts: `/* shop:ledger.receipts */ select order_id, amount_minor from receipt`,
  tasksOpen: `/* shop:ledger.tasks-open */
    select count(*)::int as count from replaysafe.task where status in ('PENDING', 'RUNNING')`,
  absorbed: `/* shop:ledger.absorbed */ select count(*)::int as count from absorbed_duplicate`,
  ordersWritten: `/* shop:ledger.orders-written */ select count(*)::int as count from customer_order`,
  chargesMade: `/* shop:ledger.charges-made */
    select count(*)::int as count, count(distinct order_id)::int as orders from charge`,
  /** The longest time between two charges that follow one another, by the database's clock. */
  longestGap: `/* shop:ledger.longest-gap */
    select coalesce(max(extract(epoch from recorded_at - before) * 1000), 0)::int as gap_ms
      from (select recorded_at, lag(recorded_at) over (order by recorded_at) as before from charge) as charges`,
} as const;
