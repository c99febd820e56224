import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Kafka, Message, Producer } from 'kafkajs';
import { HEADERS, type Resource } from 'replaysafe';
import type { Order } from './order.js';

/** As long as a producer's linger may be. */
const LINGER_MS = 50;

/**
 * Publishes after the commit, with no row to remember it by, and several orders at once, as producers do: whoever is killed in
 * between has accepted orders that nobody hears of. Used only when the demo switches the guard `no-outbox` off.
 */
export function createDirectPublisher(
  kafka: Kafka,
  topic: string,
): Resource & { publish(order: Order): Promise<void>; stop(deadline?: AbortSignal): Promise<void> } {
  let producer: Promise<Producer> | undefined;
  let waiting: Message[] = [];
  let flushing: Promise<void> | undefined;

  const connected = (): Promise<Producer> =>
    (producer ??= (async () => {
      const opened = kafka.producer({ allowAutoTopicCreation: false });
      await opened.connect();
      return opened;
    })());

  const flush = async (): Promise<void> => {
    await sleep(LINGER_MS);
    const messages = waiting;
    waiting = [];
    flushing = undefined;
    await (await connected()).send({ topic, messages });
  };

  return {
    name: 'direct-publisher',
    publish: (order) => {
      const headers = {
        [HEADERS.eventId]: randomUUID(),
        [HEADERS.eventType]: 'OrderConfirmed',
        [HEADERS.contentType]: 'application/json',
      };
      waiting.push({ key: order.orderId, value: JSON.stringify(order), headers });
      return (flushing ??= flush());
    },
    // A graceful stop loses nothing even so.
    stop: async () => {
      await flushing;
      await (await producer)?.disconnect();
    },
  };
}
