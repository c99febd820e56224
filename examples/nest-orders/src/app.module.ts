import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ReplaysafeModule } from 'replaysafe/adapters/nestjs';
import { Messaging } from './messaging';
import { Order } from './order.entity';
import { OrdersController } from './orders.controller';
import { OrdersService } from './orders.service';
import { settings } from './settings';
import { Shipment } from './shipment.entity';

@Module({
  imports: [
    ReplaysafeModule.forRoot({ lifecycle: { name: 'nest-orders' } }),
    // It destroys its DataSource in onApplicationShutdown, which runs when requests, relay and consumer are done.
    TypeOrmModule.forRoot({
      type: 'postgres',
      url: settings.databaseUrl,
      entities: [Order, Shipment],
      // For an example; a service has migrations.
      synchronize: true,
    }),
  ],
  controllers: [OrdersController],
  providers: [OrdersService, Messaging],
})
export class AppModule {}
