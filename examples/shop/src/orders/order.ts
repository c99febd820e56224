import type { OutboxEvent } from 'replaysafe';
import { asFields, idComplaint, moneyComplaint, type Money } from '../service/money.js';
import { ordersSql } from './sql.js';

export interface NewOrder extends Money {
  readonly customerId: string;
}

export interface Order extends NewOrder {
  readonly orderId: string;
}

/** The one method of a `pg` client, or of a pool, that is needed here. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ rows: unknown[] }>;
}

/** Reads the body of `POST /orders`, or says what is wrong with it. */
export function parseNewOrder(body: unknown): NewOrder | string {
  const fields = asFields(body);
  if (fields === undefined) return 'the body must be a JSON object';
  const complaint = idComplaint(fields, 'customerId') ?? moneyComplaint(fields);
  if (complaint !== undefined) return complaint;
  const { customerId, amountMinor, currency } = fields as unknown as NewOrder;
  return { customerId, amountMinor, currency };
}

export async function insertOrder(tx: Queryable, { customerId, amountMinor, currency }: NewOrder): Promise<Order> {
  const { rows } = await tx.query(ordersSql.insert, [customerId, amountMinor, currency]);
  const [row] = rows as { id: string }[];
  if (row === undefined) throw new Error('the insert returned no row');
  return { orderId: row.id, customerId, amountMinor, currency };
}

interface OrderRow {
  readonly id: string;
  readonly customer_id: string;
  readonly amount_minor: number;
  readonly currency: string;
  readonly created_at: Date;
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export async function findOrder(db: Queryable, id: string): Promise<(Order & { createdAt: Date }) | undefined> {
  if (!UUID.test(id)) return undefined;
  const { rows } = await db.query(ordersSql.byId, [id]);
  const [row] = rows as OrderRow[];
  return (
    row && {
      orderId: row.id,
      customerId: row.customer_id,
      amountMinor: row.amount_minor,
      currency: row.currency,
      createdAt: row.created_at,
    }
  );
}

export function orderConfirmed(order: Order, topic: string): OutboxEvent {
  return { topic, type: 'OrderConfirmed', aggregateType: 'order', key: order.orderId, payload: order };
}
