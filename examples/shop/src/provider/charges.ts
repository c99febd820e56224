import type { SqlExecutor } from 'replaysafe';
import { asFields, idComplaint, moneyComplaint, type Money } from '../service/money.js';
import { providerSql } from './sql.js';

export interface ChargeRequest extends Money {
  readonly orderId: string;
}

/** Reads the body of `POST /charges`, or says what is wrong with it. */
export function parseChargeRequest(body: unknown): ChargeRequest | string {
  const fields = asFields(body);
  if (fields === undefined) return 'the body must be a JSON object';
  const complaint = idComplaint(fields, 'orderId') ?? moneyComplaint(fields);
  if (complaint !== undefined) return complaint;
  const { orderId, amountMinor, currency } = fields as unknown as ChargeRequest;
  return { orderId, amountMinor, currency };
}

/** Moves the money. Called twice, it moves it twice. */
export async function charge(sql: SqlExecutor, request: ChargeRequest): Promise<string> {
  const { orderId, amountMinor, currency } = request;
  const { rows } = await sql.query<{ id: string }>(providerSql.charge, [orderId, amountMinor, currency]);
  if (rows[0] === undefined) throw new Error('the insert returned no row');
  return rows[0].id;
}

/** Sends a receipt. Called twice, the customer gets two. */
export async function sendReceipt(sql: SqlExecutor, { orderId, amountMinor }: ChargeRequest): Promise<string> {
  const { rows } = await sql.query<{ id: string }>(providerSql.sendReceipt, [orderId, amountMinor]);
  if (rows[0] === undefined) throw new Error('the insert returned no row');
  return rows[0].id;
}

/** All charges of an order, oldest first: more than one is a double charge. */
export async function chargesOf(sql: SqlExecutor, orderId: string): Promise<readonly unknown[]> {
  const { rows } = await sql.query<{ id: string; amount_minor: number; currency: string; charged_at: Date }>(
    providerSql.chargesOf,
    [orderId],
  );
  return rows.map((row) => ({
    chargeId: row.id,
    amountMinor: row.amount_minor,
    currency: row.currency,
    chargedAt: row.charged_at,
  }));
}
