export const ordersTables = `/* shop:orders.tables */
  create table if not exists customer_order (
    id uuid primary key default gen_random_uuid(),
    customer_id text not null,
    amount_minor integer not null check (amount_minor > 0),
    currency text not null,
    created_at timestamptz not null default clock_timestamp()
  );`;

export const ordersSql = {
  insert: `/* shop:orders.insert */
    insert into customer_order (customer_id, amount_minor, currency) values ($1, $2, $3) returning id`,
  byId: `/* shop:orders.by-id */
    select id, customer_id, amount_minor, currency, created_at from customer_order where id = $1`,
  ofCustomer: `/* shop:orders.of-customer */
    select count(*)::int as orders, coalesce(sum(amount_minor), 0)::int as total_minor
      from customer_order where customer_id = $1`,
} as const;
