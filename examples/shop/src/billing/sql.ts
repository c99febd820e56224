import { ABSORBED_TABLE } from '../service/absorbed.js';

export const billingTables = `/* shop:billing.tables */
  -- Nothing here keeps an order from being recorded twice either: that is what the dedup row is for, and the ledger would
  -- show it.
  create table if not exists charge (
    id bigint generated always as identity primary key,
    order_id text not null,
    amount_minor integer not null check (amount_minor > 0),
    currency text not null,
    provider_charge_id text not null,
    recorded_at timestamptz not null default clock_timestamp()
  );
  create index if not exists charge_order on charge (order_id);
  ${ABSORBED_TABLE}`;

export const billingSql = {
  record: `/* shop:billing.record */
    insert into charge (order_id, amount_minor, currency, provider_charge_id) values ($1, $2, $3, $4)`,
} as const;
