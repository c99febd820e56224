import { ABSORBED_TABLE } from '../service/absorbed.js';

export const providerTables = `/* shop:provider.tables */
  -- One row for each time that money really moved. Nothing here keeps an order from being charged twice: whether that
  -- happens is what the ledger wants to know.
  create table if not exists charge (
    id uuid primary key default gen_random_uuid(),
    order_id text not null,
    amount_minor integer not null check (amount_minor > 0),
    currency text not null,
    charged_at timestamptz not null default clock_timestamp()
  );
  create index if not exists charge_order on charge (order_id);
  -- One row for each receipt that went out.
  create table if not exists receipt (
    id uuid primary key default gen_random_uuid(),
    order_id text not null,
    amount_minor integer not null check (amount_minor > 0),
    sent_at timestamptz not null default clock_timestamp()
  );
  ${ABSORBED_TABLE}`;

export const providerSql = {
  charge: `/* shop:provider.charge */
    insert into charge (order_id, amount_minor, currency) values ($1, $2, $3) returning id`,
  sendReceipt: `/* shop:provider.send-receipt */
    insert into receipt (order_id, amount_minor) values ($1, $2) returning id`,
  chargesOf: `/* shop:provider.charges-of */
    select id, amount_minor, currency, charged_at from charge where order_id = $1 order by charged_at`,
} as const;
