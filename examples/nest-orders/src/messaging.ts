import { Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { Kafka, logLevel } from 'kafkajs';
import { kafkajsPublisher, kafkajsSubscriber } from 'replaysafe/adapters/broker/kafkajs';
import { InjectLifecycle } from 'replaysafe/adapters/nestjs';
import { fromTypeorm } from 'replaysafe/adapters/sql/typeorm';
import { createConsumer, type Consumer } from 'replaysafe/inbox';
import type { Lifecycle } from 'replaysafe/lifecycle';
import { migrate } from 'replaysafe/migrate';
import { createOutbox, createRelay, type Outbox, type Relay } from 'replaysafe/outbox';
import type { SqlPort } from 'replaysafe';
import { DataSource, type EntityManager } from 'typeorm';
import { settings } from './settings';
import { ship } from './shipping';

const kafka = (clientId: string): Kafka =>
  new Kafka({ clientId, brokers: settings.brokers, logLevel: logLevel.NOTHING });

/** The outbox and the consumer, each registered with the lifecycle as it is made. */
@Injectable()
export class Messaging implements OnModuleInit, OnApplicationBootstrap {
  readonly outbox: Outbox<EntityManager>;
  readonly relay: Relay;
  private readonly sql: SqlPort<EntityManager>;
  private readonly consumer: Consumer;

  constructor(@InjectLifecycle() lifecycle: Lifecycle, dataSource: DataSource) {
    const { logger } = lifecycle;
    this.sql = fromTypeorm(dataSource, { logger });
    this.outbox = createOutbox({ sql: this.sql });

    const publisher = kafkajsPublisher({ kafka, name: 'nest-orders', logger });
    lifecycle.producer(publisher);
    this.relay = lifecycle.relay(createRelay({ sql: this.sql, publisher, logger, leaseMs: 5_000 }));

    this.consumer = lifecycle.consumer(
      createConsumer({
        sql: this.sql,
        subscriber: kafkajsSubscriber({
          kafka,
          consumer: 'shipping',
          sessionTimeoutMs: settings.sessionMs,
          heartbeatMs: Math.min(1_000, settings.sessionMs / 5),
          logger,
        }),
        consumer: 'shipping',
        topics: [settings.topic],
        group: `shipping.${settings.topic}`,
        handle: (event, { tx }) => ship(event, tx),
        outbox: this.outbox,
        logger,
      }),
    );
  }

  async onModuleInit(): Promise<void> {
    await migrate(this.sql);
  }

  async onApplicationBootstrap(): Promise<void> {
    this.relay.start();
    await this.consumer.start();
  }
}
