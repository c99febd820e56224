import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from 'replaysafe';
import { createHttpClient, type HttpClient } from 'replaysafe/client';
import type { IntendedOrder } from '../../src/demo/ordering-client.js';

const BETWEEN_TRIES_MS = 50;
const GIVES_UP_AFTER_MS = 60_000;

/** An order the customer wants, and the answer it will get. */
export interface Placing {
  readonly order: IntendedOrder;
  /** @throws when there is no answer after a minute, or one that refuses the order */
  readonly accepted: Promise<void>;
}

/** Places orders as a real client does: repeats with the same key until it has an answer. */
export class Customer {
  readonly placed: IntendedOrder[] = [];
  readonly #orders: HttpClient;
  readonly #leaving = new AbortController();

  constructor(baseUrl: string) {
    this.#orders = createHttpClient({
      name: 'orders',
      baseUrl,
      timeouts: { connectMs: 500, headersMs: 3_000, bodyMs: 3_000, totalMs: 5_000 },
      // The service is killed and started again within a second.
      breaker: { openMs: 100 },
    });
  }

  newOrder(): IntendedOrder {
    return { customerId: `c-${randomUUID()}`, amountMinor: randomInt(100, 50_000) };
  }

  place(order = this.newOrder()): Placing {
    this.placed.push(order);
    const accepted = this.#untilAnswered(order);
    // Awaited behind the kill; a failure before that is no unhandled one.
    accepted.catch(() => undefined);
    return { order, accepted };
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#orders.stop(AbortSignal.timeout(1_000));
  }

  async #untilAnswered(order: IntendedOrder): Promise<void> {
    const key = randomUUID();
    const until = performance.now() + GIVES_UP_AFTER_MS;
    for (;;) {
      const answer = await this.#try(order, key);
      if (answer?.status === 201) {
        order.orderId = answer.json<{ orderId: string }>().orderId;
        return;
      }
      const again = answer === undefined || answer.status >= 500 || [409, 425, 429].includes(answer.status);
      if (!again) throw new Error(`the order was refused: ${String(answer.status)} ${answer.text()}`);
      if (performance.now() > until)
        throw new Error(`no answer: last ${String(answer?.status ?? 'a lost connection')}`);
      await sleep(BETWEEN_TRIES_MS, undefined, { signal: this.#leaving.signal });
    }
  }

  async #try({ customerId, amountMinor }: IntendedOrder, idempotencyKey: string) {
    try {
      return await this.#orders.post('/orders', {
        idempotencyKey,
        json: { customerId, amountMinor, currency: 'EUR' },
        retry: false,
      });
    } catch (error) {
      if (hasCode(error, 'RS_CLIENT_SYSTEM_UNAVAILABLE', 'RS_CLIENT_OUTCOME_UNKNOWN')) return undefined;
      throw error;
    }
  }
}
