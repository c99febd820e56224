import type { Kafka, Producer } from 'kafkajs';
import { randomUUID } from 'node:crypto';
import { HEADERS, type Resource } from 'replaysafe';
import type { Order } from './order.js';

/**
 * Publishes after the commit, with no row to remember it by: whoever is killed in between has accepted an order that nobody
 * hears of. Used only when the demo switches the guard `no-outbox` off.
 */
export function createDirectPublisher(
  kafka: Kafka,
  topic: string,
): Resource & { publish(order: Order): Promise<void>; stop(deadline?: AbortSignal): Promise<void> } {
  let producer: Promise<Producer> | undefined;
  const connected = (): Promise<Producer> =>
    (producer ??= (async () => {
      const opened = kafka.producer({ allowAutoTopicCreation: false });
      await opened.connect();
      return opened;
    })());
  return {
    name: 'direct-publisher',
    publish: async (order) => {
      const headers = {
        [HEADERS.eventId]: randomUUID(),
        [HEADERS.eventType]: 'OrderConfirmed',
        [HEADERS.contentType]: 'application/json',
      };
      const message = { key: order.orderId, value: JSON.stringify(order), headers };
      await (await connected()).send({ topic, messages: [message] });
    },
    stop: async () => {
      await (await producer)?.disconnect();
    },
  };
}
