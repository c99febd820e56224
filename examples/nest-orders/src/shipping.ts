import type { InboxEvent } from 'replaysafe/inbox';
import type { EntityManager } from 'typeorm';
import { Shipment } from './shipment.entity';

interface OrderConfirmed {
  readonly orderId: string;
  readonly sku: string;
}

/** Applies one `OrderConfirmed`. The manager is that of the transaction that also records the event as applied. */
export async function ship(event: InboxEvent, manager: EntityManager): Promise<void> {
  const { orderId, sku } = parse(event.payload);
  await manager.insert(Shipment, { orderId, sku });
}

function parse(payload: unknown): OrderConfirmed {
  const { orderId, sku } = (payload ?? {}) as Partial<Record<keyof OrderConfirmed, unknown>>;
  if (typeof orderId !== 'string' || typeof sku !== 'string') throw new Error('OrderConfirmed: orderId and sku');
  return { orderId, sku };
}
