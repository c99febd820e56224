import { BadRequestException, Body, Controller, Post } from '@nestjs/common';
import type { Order } from './order.entity';
import { OrdersService, type NewOrder } from './orders.service';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post()
  create(@Body() body: unknown): Promise<Order> {
    return this.orders.confirm(parse(body));
  }
}

function parse(body: unknown): NewOrder {
  const { sku, quantity } = (body ?? {}) as Partial<Record<keyof NewOrder, unknown>>;
  if (typeof sku !== 'string' || sku === '' || sku.length > 100)
    throw new BadRequestException('sku: 1 to 100 characters');
  if (!Number.isInteger(quantity) || Number(quantity) < 1 || Number(quantity) > 1_000) {
    throw new BadRequestException('quantity: a whole number from 1 to 1000');
  }
  return { sku, quantity: Number(quantity) };
}
