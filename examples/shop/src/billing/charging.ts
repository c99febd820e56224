import type { HttpClient } from 'replaysafe/client';
import { asFields, idComplaint, moneyComplaint, type Money } from '../service/money.js';
import { billingSql } from './sql.js';

/** What billing reads of `OrderConfirmed`. */
export interface ConfirmedOrder extends Money {
  readonly orderId: string;
}

/** The provider could not be asked. The same again, with the same key, is safe and may succeed: it uses up no attempt. */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable';
  readonly retryable = true;
}

/** @throws Error for a payload that no later attempt can make right */
export function parseConfirmedOrder(payload: unknown): ConfirmedOrder {
  const fields = asFields(payload) ?? {};
  const complaint = idComplaint(fields, 'orderId') ?? moneyComplaint(fields);
  if (complaint !== undefined) throw new Error(`OrderConfirmed: ${complaint}`);
  return fields as unknown as ConfirmedOrder;
}

/**
 * Asks the provider to charge an order, under a key that is the same however often the event is delivered.
 *
 * @returns the provider's id of the charge
 * @throws ProviderUnavailable, RS_CLIENT_SYSTEM_UNAVAILABLE, RS_CLIENT_OUTCOME_UNKNOWN: ask again
 * @throws Error where the provider refuses the charge
 */
export async function chargeAtProvider(
  provider: HttpClient,
  order: ConfirmedOrder,
  key: string,
  signal: AbortSignal,
): Promise<string> {
  const { orderId, amountMinor, currency } = order;
  const answer = await provider.post('/charges', {
    idempotencyKey: key,
    json: { orderId, amountMinor, currency },
    signal,
  });
  if (answer.status === 201) return answer.json<{ chargeId: string }>().chargeId;
  // 409 here says that an earlier try of this very charge is still running.
  if (answer.status >= 500 || answer.status === 409 || answer.status === 429) {
    throw new ProviderUnavailable(`the provider answered ${String(answer.status)}`);
  }
  throw new Error(`the provider refused the charge: ${String(answer.status)} ${answer.text().slice(0, 200)}`);
}

/** The one method of a `pg` client that is needed here. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<unknown>;
}

export async function recordCharge(tx: Queryable, order: ConfirmedOrder, providerChargeId: string): Promise<void> {
  const { orderId, amountMinor, currency } = order;
  await tx.query(billingSql.record, [orderId, amountMinor, currency, providerChargeId]);
}
