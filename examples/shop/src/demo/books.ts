import pg from 'pg';
import { type Book, reconcile, type Reconciliation } from 'replaysafe-crashkit';
import type { DatabaseUrls } from '../shop/databases.js';
import type { IntendedOrder } from './ordering-client.js';
import { demoSql } from './sql.js';

/** What the three databases say, read at one moment each. */
export interface Books {
  readonly orders: readonly { readonly id: string; readonly customer_id: string; readonly amount_minor: number }[];
  readonly events: { readonly published: number; readonly open: number; readonly dead: number };
  readonly billing: readonly Charge[];
  readonly provider: readonly Charge[];
  /** Receipts that the provider sent; undefined where nobody orders any. */
  readonly receipts: readonly Charge[] | undefined;
  /** Deliveries that billing dropped, and requests that the provider answered from its store, one row each. */
  readonly absorbed: { readonly consumer: number; readonly provider: number };
  readonly longestGapMs: number;
}

interface Charge {
  readonly order_id: string;
  readonly amount_minor: number;
}

/** How far everything is; cheap enough to be asked several times a second. */
export interface Progress {
  readonly orders: number;
  /** Events in the outbox that are not published yet. */
  readonly open: number;
  readonly published: number;
  readonly charged: number;
  /** Orders with at least one charge. */
  readonly ordersCharged: number;
  readonly providerCharges: number;
  /** Receipts that are still to be sent. */
  readonly tasksOpen: number;
}

/** Connections of the ledger's own: whatever happens to the services, it reads what is in their databases. */
export class BookReader {
  readonly #pools: Readonly<Record<keyof DatabaseUrls, pg.Pool>>;
  readonly #topic: string;
  readonly #receipts: boolean;

  /** @param receipts whether billing orders them; its unguarded consumer, which has no transaction, does not */
  constructor(databases: DatabaseUrls, topic: string, receipts = true) {
    this.#topic = topic;
    this.#receipts = receipts;
    const open = (connectionString: string): pg.Pool => {
      const pool = new pg.Pool({ connectionString, max: 2 });
      // An idle connection that breaks is replaced by the next query.
      pool.on('error', () => undefined);
      return pool;
    };
    this.#pools = {
      orders: open(databases.orders),
      billing: open(databases.billing),
      provider: open(databases.provider),
    };
  }

  async progress(): Promise<Progress> {
    const [events, orders, billing, provider, tasks] = await Promise.all([
      this.#events(),
      this.#counts('orders', demoSql.ordersWritten),
      this.#counts('billing', demoSql.chargesMade),
      this.#counts('provider', demoSql.chargesMade),
      this.#counts('billing', demoSql.tasksOpen),
    ]);
    return {
      orders: orders.count,
      open: events.open,
      published: events.published,
      charged: billing.count,
      ordersCharged: billing.orders,
      providerCharges: provider.count,
      tasksOpen: tasks.count,
    };
  }

  async absorbed(): Promise<Books['absorbed']> {
    const [consumer, provider] = await Promise.all([
      this.#counts('billing', demoSql.absorbed),
      this.#counts('provider', demoSql.absorbed),
    ]);
    return { consumer: consumer.count, provider: provider.count };
  }

  async read(): Promise<Books> {
    const [orders, events, billing, provider, receipts, absorbed, gap] = await Promise.all([
      this.#pools.orders.query<Books['orders'][number]>(demoSql.orders),
      this.#events(),
      this.#pools.billing.query<Charge>(demoSql.charges),
      this.#pools.provider.query<Charge>(demoSql.charges),
      this.#pools.provider.query<Charge>(demoSql.receipts),
      this.absorbed(),
      this.#pools.billing.query<{ gap_ms: number }>(demoSql.longestGap),
    ]);
    return {
      orders: orders.rows,
      events,
      billing: billing.rows,
      provider: provider.rows,
      receipts: this.#receipts ? receipts.rows : undefined,
      absorbed,
      longestGapMs: gap.rows[0]?.gap_ms ?? 0,
    };
  }

  async close(): Promise<void> {
    await Promise.all(Object.values(this.#pools).map((pool) => pool.end()));
  }

  async #events(): Promise<Books['events']> {
    const { rows } = await this.#pools.orders.query<Books['events']>(demoSql.events, [this.#topic]);
    return rows[0] ?? { published: 0, open: 0, dead: 0 };
  }

  async #counts(database: keyof DatabaseUrls, text: string): Promise<{ count: number; orders: number }> {
    const { rows } = await this.#pools[database].query<{ count: number; orders?: number }>(text);
    return { count: rows[0]?.count ?? 0, orders: rows[0]?.orders ?? 0 };
  }
}

/**
 * Compares what the client wants with what the three databases hold, by intended order.
 *
 * An order counts as intended if the client was told that it is accepted, or if it is in the orders database although
 * the client was not told. What was neither accepted nor written need not be anywhere.
 */
export function reconcileOrders(client: readonly IntendedOrder[], books: Books): Reconciliation {
  const customerOf = new Map(books.orders.map((order) => [order.id, order.customer_id]));
  const written = new Set(customerOf.values());
  const intended = client
    .filter((order) => order.orderId !== undefined || written.has(order.customerId))
    .map((order) => ({ ref: order.customerId, amount: order.amountMinor }));
  const byCustomer = (charges: readonly Charge[]): Book['entries'] =>
    charges.map((charge) => ({
      ref: customerOf.get(charge.order_id) ?? `order ${charge.order_id}`,
      amount: charge.amount_minor,
    }));
  return reconcile(intended, [
    { name: 'orders', entries: books.orders.map((order) => ({ ref: order.customer_id, amount: order.amount_minor })) },
    { name: 'billing', entries: byCustomer(books.billing) },
    { name: 'provider', entries: byCustomer(books.provider) },
    ...(books.receipts ? [{ name: 'receipts', entries: byCustomer(books.receipts) }] : []),
  ]);
}
