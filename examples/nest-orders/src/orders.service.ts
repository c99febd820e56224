import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { Messaging } from './messaging';
import { Order } from './order.entity';
import { settings } from './settings';

export interface NewOrder {
  readonly sku: string;
  readonly quantity: number;
}

@Injectable()
export class OrdersService {
  constructor(
    private readonly dataSource: DataSource,
    private readonly messaging: Messaging,
  ) {}

  /** The order and its event are committed together, or neither is. */
  async confirm({ sku, quantity }: NewOrder): Promise<Order> {
    const order = await this.dataSource.transaction(async (manager) => {
      const stored = await manager.save(Order, { sku, quantity });
      await this.messaging.outbox.enqueue(manager, {
        topic: settings.topic,
        key: stored.id,
        type: 'OrderConfirmed',
        payload: { orderId: stored.id, sku, quantity },
      });
      return stored;
    });
    // A hint: an idle relay would find the event by itself, a little later.
    this.messaging.relay.wake();
    return order;
  }
}
