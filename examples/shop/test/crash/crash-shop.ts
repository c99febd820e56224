import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { type FaultProxy, freePort, type KafkaBehindProxy, startFaultProxy } from '@replaysafe/test-services';
import { readKillList, type Reconciliation, writeKillList } from 'replaysafe-crashkit';
import pg from 'pg';
import { expect, inject } from 'vitest';
import { type Books, BookReader, reconcileOrders } from '../../src/demo/books.js';
import type { IntendedOrder } from '../../src/demo/ordering-client.js';
import { GroupLag, untilPipelineEmpty } from '../../src/demo/pipeline.js';
import { type DatabaseUrls, dropDatabases, openDatabases } from '../../src/shop/databases.js';
import { Instance, type ServiceName } from '../../src/shop/instance.js';
import { type Shop, startShop } from '../../src/shop/shop.js';
import { Customer } from './customer.js';

export type RelayMode = 'single-phase' | 'two-phase';

export interface CrashShopOptions {
  readonly relayMode: RelayMode;
  /** A broker that only this shop uses, behind a proxy. Default: the shared one, with no proxy between. */
  readonly kafka?: KafkaBehindProxy;
  /** Guards to switch off, to see that the tests would notice. */
  readonly unsafe?: string;
}

const SERVICES: readonly ServiceName[] = ['orders', 'billing', 'provider'];
const LOOK_EVERY_MS = 40;
const DIES_WITHIN_MS = 30_000;
const preload = pathToFileURL(createRequire(import.meta.url).resolve('replaysafe-crashkit/preload')).href;

/**
 * A whole shop of real processes, each with a kill list that can be written at any time, and a proxy in front of everything
 * that a process of it talks to. A process that dies stays down until the test starts it again, on its port.
 */
export class CrashShop {
  readonly shop: Shop;
  readonly customer: Customer;
  /** In front of each service's database. */
  readonly databases: Readonly<Record<ServiceName, FaultProxy>>;
  /** In front of the provider. */
  readonly provider: FaultProxy;
  /** Where orders first connects to Kafka; what it is told there leads past the proxy. */
  readonly bootstrap: FaultProxy;
  readonly #environment: Readonly<Record<ServiceName, Record<string, string>>>;
  readonly #lists: string;
  readonly #suffix: string;
  /** Past the proxy. */
  readonly brokers: string;
  readonly #reader: BookReader;
  readonly #lag: GroupLag;
  readonly #undo: (() => void)[] = [];
  readonly #deathsSeen = new Map<ServiceName, number>();

  private constructor(made: {
    shop: Shop;
    databases: Record<ServiceName, FaultProxy>;
    provider: FaultProxy;
    bootstrap: FaultProxy;
    environment: Record<ServiceName, Record<string, string>>;
    lists: string;
    suffix: string;
    brokers: string;
    receipts: boolean;
  }) {
    this.shop = made.shop;
    this.databases = made.databases;
    this.provider = made.provider;
    this.bootstrap = made.bootstrap;
    this.#environment = made.environment;
    this.#lists = made.lists;
    this.#suffix = made.suffix;
    this.brokers = made.brokers;
    this.customer = new Customer(this.instance('orders').address);
    this.#reader = new BookReader(this.shop.databases, this.shop.topic, made.receipts);
    this.#lag = new GroupLag(this.brokers, this.shop.topic, this.shop.group);
  }

  /**
   * @param before may use the databases and the environment of orders before anything has been started on them
   */
  static async open(
    options: CrashShopOptions,
    before?: (fresh: { orders: Instance; list: string }) => Promise<void>,
  ): Promise<CrashShop> {
    const suffix = `_crash_${randomBytes(4).toString('hex')}`;
    const lists = join(tmpdir(), `replaysafe${suffix}`);
    const brokers = options.kafka?.kafka.brokers ?? inject('kafkaBrokers');
    const urls = await openDatabases(inject('databaseUrl'), suffix);
    const databases = await proxiesTo(urls);
    const nowhere = { host: '127.0.0.1', port: 9 };
    const provider = await startFaultProxy({ target: nowhere });
    const bootstrap = await startFaultProxy({ target: hostAndPort(brokers) });
    const own = (service: ServiceName): Record<string, string> => ({
      DATABASE_URL: databases[service].through(urls[service]),
      REPLAYSAFE_KILL_LIST: `${lists}-${service}`,
      LAME_DUCK_MS: '50',
      ...(options.unsafe === undefined ? {} : { SHOP_UNSAFE: options.unsafe }),
    });
    const environment = {
      orders: {
        ...own('orders'),
        RELAY_MODE: options.relayMode,
        RELAY_LEASE_MS: '1000',
        KAFKA_BROKERS: options.kafka?.brokers ?? bootstrap.address,
      },
      billing: {
        ...own('billing'),
        KAFKA_BROKERS: options.kafka?.brokers ?? brokers,
        PROVIDER_URL: `http://${provider.address}`,
      },
      provider: own('provider'),
    };
    if (before !== undefined) {
      await before({
        list: `${lists}-orders`,
        orders: new Instance({
          service: 'orders',
          name: 'orders-on-nothing',
          port: await freePort(),
          env: environment.orders,
          nodeArgs: ['--import', preload],
          logFile: `${lists}-orders-on-nothing.log`,
          restart: false,
        }),
      });
    }
    const ownBroker = options.kafka !== undefined || inject('kafkaOwn');
    const shop = await startShop({
      databaseUrl: inject('databaseUrl'),
      kafkaBrokers: brokers,
      // What a SIGKILL of billing costs.
      sessionMs: ownBroker ? 1_500 : 6_000,
      heartbeatMs: ownBroker ? 300 : 1_000,
      suffix,
      env: environment,
      nodeArgs: ['--import', preload],
      restart: false,
    });
    provider.retarget(hostAndPort(new URL(shop.provider.address).host));
    return new CrashShop({
      shop,
      databases,
      provider,
      bootstrap,
      environment,
      lists,
      suffix,
      brokers,
      receipts: options.unsafe !== 'no-dedup-row',
    });
  }

  instance(service: ServiceName): Instance {
    return (service === 'provider' ? this.shop.provider : this.shop[service][0])!;
  }

  /** Where the next process of a service dies, one point after the other: `<event>[:<nth>[:<signal>]]`. */
  arm(service: ServiceName, points: readonly string[]): void {
    writeKillList(`${this.#lists}-${service}`, points);
  }

  /** Waits until a process has died that the test has not heard of yet, and tells how. */
  async death(service: ServiceName): Promise<{ code: number | null; signal: NodeJS.Signals | null; said: string }> {
    const instance = this.instance(service);
    const seen = this.#deathsSeen.get(service) ?? 0;
    if (instance.deaths.length === seen && instance.pid !== undefined) {
      await instance.gone(instance.pid, DIES_WITHIN_MS);
    }
    const death = instance.deaths[seen];
    if (death === undefined) throw new Error(`${instance.name} was down already, and nobody has started it again`);
    this.#deathsSeen.set(service, seen + 1);
    const lines = readFileSync(join(this.shop.logFolder, `${instance.name}.log`), 'utf8').split('\n');
    const ofCrashkit = (line: string): boolean =>
      line.startsWith('replaysafe-crashkit:') && line.endsWith(`pid ${String(death.pid)}`);
    return { code: death.code, signal: death.signal, said: lines.filter(ofCrashkit).join('\n') };
  }

  /** The points at which nobody has died yet. */
  left(service: ServiceName): string[] {
    return readKillList(`${this.#lists}-${service}`);
  }

  /** What a provocation undoes when the process is dead and not yet started again, e.g. an outage. */
  afterDeath(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** @see afterDeath */
  died(): void {
    for (const undo of this.#undo.splice(0)) undo();
  }

  /** Waits until a service says that it is stopping. */
  async stopping(service: ServiceName): Promise<void> {
    await expect.poll(() => readiness(this.instance(service).address), { timeout: 5_000, interval: 20 }).not.toBe(200);
  }

  /** Ends a service with SIGKILL, and starts it again, e.g. to make it connect anew. */
  async restart(service: ServiceName): Promise<void> {
    const instance = this.instance(service);
    instance.kill('SIGKILL');
    await this.death(service);
    await instance.start();
  }

  /** Runs orders in another mode on its port until that process dies, and leaves the port free. */
  async untilOrdersDiesIn(mode: RelayMode, provoke: () => void): Promise<void> {
    const regular = this.instance('orders');
    const dying = this.death('orders');
    await regular.stop(DIES_WITHIN_MS);
    await dying;
    const other = new Instance({
      service: 'orders',
      name: 'orders-in-other-mode',
      port: Number(new URL(regular.address).port),
      env: { ORDERS_TOPIC: this.shop.topic, ...this.#environment.orders, RELAY_MODE: mode },
      nodeArgs: ['--import', preload],
      logFile: join(this.shop.logFolder, 'orders-in-other-mode.log'),
      restart: false,
    });
    await other.start();
    const { pid } = other;
    provoke();
    await other.gone(pid, DIES_WITHIN_MS);
  }

  /** What a service's database says, past the proxy. */
  async rows(service: ServiceName, text: string, values: unknown[]): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: this.shop.databases[service] });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Records that billing's group has not told the broker to be done with. */
  lag(): Promise<number> {
    return this.#lag.read();
  }

  /** Waits until nothing is under way any more, and compares these orders in the three databases with what was wanted. */
  async ledgerOf(orders: readonly IntendedOrder[] = this.customer.placed): Promise<Reconciliation> {
    expect(await this.#untilStill()).toBe('empty');
    return reconcileOrders(orders, only(orders, await this.#reader.read()));
  }

  /** The same where something may be lost, and so never comes. */
  async damage(): Promise<Pick<Reconciliation, 'lost' | 'double' | 'wrongAmount'>> {
    expect(await this.#untilStill()).not.toBe('timed-out');
    const { lost, double, wrongAmount } = reconcileOrders(this.customer.placed, await this.#reader.read());
    return { lost, double, wrongAmount };
  }

  #untilStill(): ReturnType<typeof untilPipelineEmpty> {
    return untilPipelineEmpty(
      this.#reader,
      this.#lag,
      { withinMs: 45_000, quietMs: 5_000 },
      () => undefined,
      () => sleep(LOOK_EVERY_MS),
    );
  }

  async close(): Promise<void> {
    await this.customer.leave();
    for (const service of SERVICES) this.arm(service, []);
    for (const proxy of this.#proxies()) proxy.resume();
    for (const instance of this.shop.instances) instance.kill('SIGKILL');
    await this.shop.stop();
    await Promise.all(this.#proxies().map((proxy) => proxy.stop()));
    await this.#reader.close();
    await this.#lag.deleteTopic();
    await this.#lag.close();
    await dropDatabases(inject('databaseUrl'), this.#suffix);
    await Promise.all(
      [...SERVICES.map((service) => `${this.#lists}-${service}`), `${this.#lists}-orders-on-nothing.log`].map((file) =>
        rm(file, { force: true }),
      ),
    );
    await rm(this.shop.logFolder, { recursive: true, force: true });
  }

  #proxies(): FaultProxy[] {
    return [...Object.values(this.databases), this.provider, this.bootstrap];
  }
}

async function readiness(address: string): Promise<number> {
  try {
    const answer = await fetch(`${address}/health/ready`);
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    // It listens no more.
    return 0;
  }
}

async function proxiesTo(urls: DatabaseUrls): Promise<Record<ServiceName, FaultProxy>> {
  const [orders, billing, provider] = await Promise.all(
    SERVICES.map((service) => {
      const { hostname, port } = new URL(urls[service]);
      return startFaultProxy({ target: { host: hostname, port: Number(port || '5432') } });
    }),
  );
  return { orders: orders!, billing: billing!, provider: provider! };
}

function hostAndPort(address: string): { host: string; port: number } {
  const [host = '', port = ''] = (address.split(',')[0] ?? '').split(':');
  return { host, port: Number(port) };
}

/** The books as if there were no other orders. */
function only(orders: readonly IntendedOrder[], books: Books): Books {
  const customers = new Set(orders.map((order) => order.customerId));
  const others = new Set(books.orders.filter((row) => !customers.has(row.customer_id)).map((row) => row.id));
  return {
    ...books,
    orders: books.orders.filter((row) => !others.has(row.id)),
    billing: books.billing.filter((row) => !others.has(row.order_id)),
    provider: books.provider.filter((row) => !others.has(row.order_id)),
    receipts: books.receipts?.filter((row) => !others.has(row.order_id)),
  };
}
