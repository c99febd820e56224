import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasCode } from 'replaysafe';
import { createHttpClient, type HttpClient, type HttpResponse } from 'replaysafe/client';
import { Balancer } from './balancer.js';
import type { SeededRandom } from './seeded-random.js';

const MOST_OPEN_ORDERS = 64;
const TRY_TIMEOUT_MS = 4_000;
const WAIT_BETWEEN_TRIES_MS = [50, 400] as const;
/** About as long as an order takes: some are cut before the work, some after it. */
const LOST_AFTER_MS = [1, 15] as const;
/** Errors of a try that the customer makes again: nothing came back, whatever is known of the outcome. */
const UNANSWERED = [
  'RS_CLIENT_SYSTEM_UNAVAILABLE',
  'RS_CLIENT_OUTCOME_UNKNOWN',
  'RS_CLIENT_OVERLOADED',
  'RS_CLIENT_ABORTED',
] as const;

export interface OrderingOptions {
  readonly addresses: readonly string[];
  readonly random: SeededRandom;
  /** Orders begun per second. */
  readonly rate: number;
  /** Share of tries whose connection is lost after the request was sent. */
  readonly lostConnections: number;
  /** The guard `key-per-try` switched off: a new key for every try. */
  readonly keyPerTry: boolean;
}

/** What the client wants, and what it knows. */
export interface IntendedOrder {
  /** One for each intended order, so that an order placed twice can be told. */
  readonly customerId: string;
  readonly amountMinor: number;
  /** Set by a 201. */
  orderId?: string;
}

/**
 * Places orders steadily, over all instances in turn, and repeats each with the same key until it has an answer, as a
 * client does that has not lost its mind. It is never killed, so what it counts can be believed.
 */
export class OrderingClient {
  readonly intended: IntendedOrder[] = [];
  retries = 0;
  /** Answers that say they were given before: the work of a repeated request was not done again. */
  replayed = 0;
  /** Answers that end an order without accepting it. There should be none. */
  readonly refusals: string[] = [];
  readonly #options: OrderingOptions;
  readonly #balancer: Balancer;
  readonly #systems: ReadonlyMap<string, HttpClient>;
  readonly #open = new Set<Promise<void>>();
  readonly #giveUp = new AbortController();
  readonly #done = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: OrderingOptions) {
    this.#options = options;
    setMaxListeners(0, this.#giveUp.signal);
    this.#balancer = new Balancer(options.addresses);
    this.#systems = new Map(
      options.addresses.map((baseUrl) => [
        baseUrl,
        createHttpClient({
          name: 'orders',
          baseUrl,
          timeouts: { connectMs: 500, headersMs: 3_000, bodyMs: 3_000, totalMs: TRY_TIMEOUT_MS },
          connections: MOST_OPEN_ORDERS,
          // Instances are killed all the time here, and are back before a breaker in real life would look again.
          breaker: { openMs: 100 },
        }),
      ]),
    );
  }

  get openOrders(): number {
    return this.#open.size;
  }

  get accepted(): number {
    return this.intended.reduce((count, order) => count + (order.orderId === undefined ? 0 : 1), 0);
  }

  /** Begins orders until the signal aborts. Those begun go on. */
  async run(stop: AbortSignal): Promise<void> {
    this.#watching = this.#balancer.watch(this.#done.signal);
    const startedAt = performance.now();
    for (let begun = 0; !stop.aborted;) {
      const due = Math.floor(((performance.now() - startedAt) / 1_000) * this.#options.rate);
      for (; begun < due; begun++) {
        // Behind by more than this the shop is down: a real client would not pile up orders either.
        if (this.#open.size < MOST_OPEN_ORDERS) this.#begin();
      }
      await sleep(10, undefined, { signal: stop }).catch(() => undefined);
    }
  }

  /** Waits until every order has its answer; gives up what has none after `withinMs`. */
  async finish(withinMs: number): Promise<void> {
    const timer = setTimeout(() => {
      this.#giveUp.abort();
    }, withinMs);
    await Promise.all(this.#open);
    clearTimeout(timer);
    await this.close();
  }

  /** Gives up what has no answer yet. Twice is harmless. */
  async close(): Promise<void> {
    this.#giveUp.abort();
    this.#done.abort();
    await Promise.all(this.#open);
    await this.#watching;
    await Promise.all([...this.#systems.values()].map((system) => system.stop(AbortSignal.timeout(1_000))));
  }

  #begin(): void {
    const order: IntendedOrder = {
      customerId: `c-${randomUUID()}`,
      amountMinor: this.#options.random.between(100, 50_000),
    };
    this.intended.push(order);
    const placing = this.#place(order).finally(() => this.#open.delete(placing));
    this.#open.add(placing);
  }

  async #place(order: IntendedOrder): Promise<void> {
    const key = randomUUID();
    for (let tries = 0; !this.#giveUp.signal.aborted;) {
      const system = this.#systems.get(this.#balancer.next() ?? '');
      if (system !== undefined) {
        if (tries > 0) this.retries += 1;
        tries += 1;
        const answer = await this.#try(system, order, this.#options.keyPerTry ? randomUUID() : key);
        if (answer !== undefined && this.#isFinal(order, answer)) return;
      }
      await sleep(this.#options.random.between(...WAIT_BETWEEN_TRIES_MS));
    }
  }

  #isFinal(order: IntendedOrder, answer: HttpResponse): boolean {
    if (answer.replayed) this.replayed += 1;
    if (answer.status === 201) {
      order.orderId = answer.json<{ orderId: string }>().orderId;
      return true;
    }
    if (answer.status >= 500 || [408, 409, 425, 429].includes(answer.status)) return false;
    this.refusals.push(`${String(answer.status)} ${answer.text().slice(0, 200)}`);
    return true;
  }

  async #try(system: HttpClient, order: IntendedOrder, key: string): Promise<HttpResponse | undefined> {
    const { customerId, amountMinor } = order;
    const { random, lostConnections } = this.#options;
    const connection = new AbortController();
    const cut = (): void => {
      connection.abort();
    };
    const timer = random.chance(lostConnections) ? setTimeout(cut, random.between(...LOST_AFTER_MS)) : undefined;
    this.#giveUp.signal.addEventListener('abort', cut);
    try {
      // `retry: false`: the next try may go to another instance, so the loop is ours.
      return await system.post('/orders', {
        idempotencyKey: key,
        json: { customerId, amountMinor, currency: 'EUR' },
        retry: false,
        signal: connection.signal,
      });
    } catch (error) {
      if (hasCode(error, ...UNANSWERED)) return undefined;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#giveUp.signal.removeEventListener('abort', cut);
    }
  }
}
