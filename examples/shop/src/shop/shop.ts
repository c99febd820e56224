import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTopics, freePort } from '@replaysafe/test-services';
import { type DatabaseUrls, openDatabases } from './databases.js';
import { Instance, type ServiceName } from './instance.js';

const STOP_WITHIN_MS = 15_000;
export const TOPIC = 'orders.confirmed';
export const TOPIC_PARTITIONS = 6;
export const GROUP = 'billing';

type Variables = Readonly<Record<string, string>>;

export interface ShopOptions {
  /** A running PostgreSQL; the databases are made on it. */
  readonly databaseUrl: string;
  readonly kafkaBrokers: string;
  /** Session time-out and heartbeat interval of billing's group, in milliseconds. Default 6,000 and 1,000. */
  readonly sessionMs?: number;
  readonly heartbeatMs?: number;
  /** How many instances of orders and of billing. Default 1 each; there is one provider. */
  readonly orders?: number;
  readonly billing?: number;
  /** Keeps apart shops that share a server and a broker: behind the names of databases, topic and group. Default none. */
  readonly suffix?: string;
  /**
   * Environment over what the shop sets, for all, for the instances of a service, and for one instance, the later over the
   * earlier: `{ billing: { PROVIDER_URL: … }, 'orders-2': { RELAY_MODE: … } }`.
   */
  readonly env?: Readonly<Partial<Record<'all' | ServiceName | `${ServiceName}-${number}`, Variables>>>;
  /** Arguments for `node` in front of a service's program, e.g. `['--import', …]`. */
  readonly nodeArgs?: readonly string[];
  /** Whether a process that dies is started again. Default true. */
  readonly restart?: boolean;
  /** Gives the start up: what was started is stopped, and the start rejects. Without effect on a shop that is open. */
  readonly signal?: AbortSignal;
}

/** A shop whose services run, each a process of its own. */
export interface Shop {
  readonly orders: readonly Instance[];
  readonly billing: readonly Instance[];
  readonly provider: Instance;
  /** All of them. */
  readonly instances: readonly Instance[];
  readonly databases: DatabaseUrls;
  readonly topic: string;
  readonly group: string;
  /** Where each instance writes its log. */
  readonly logFolder: string;
  /** SIGTERM to all at once, SIGKILL to what is left after 15 s. Twice is harmless. */
  stop(): Promise<void>;
}

/** Makes databases and topic, starts every service, and waits until all are ready. Stops what it started if one is not. */
export async function startShop(options: ShopOptions): Promise<Shop> {
  const suffix = options.suffix ?? '';
  const topic = TOPIC + suffix.replaceAll('_', '.');
  const group = GROUP + suffix.replaceAll('_', '.');
  const [databases, logFolder] = await Promise.all([
    openDatabases(options.databaseUrl, suffix),
    mkdtemp(join(tmpdir(), 'replaysafe-shop-')),
    createTopics(options.kafkaBrokers, [
      { topic, partitions: TOPIC_PARTITIONS },
      // Where billing's dead letters go.
      { topic: `${topic}.dead`, partitions: 1 },
    ]),
  ]);

  const make = async (
    service: ServiceName,
    name: 'provider' | `${ServiceName}-${number}`,
    env: Record<string, string>,
  ): Promise<Instance> =>
    new Instance({
      service,
      name,
      port: await freePort(),
      env: {
        DATABASE_URL: databases[service],
        ...env,
        ...options.env?.all,
        ...options.env?.[service],
        ...options.env?.[name],
      },
      nodeArgs: options.nodeArgs ?? [],
      logFile: join(logFolder, `${name}.log`),
      restart: options.restart ?? true,
    });
  const several = (service: ServiceName, count: number, env: Record<string, string>): Promise<Instance[]> =>
    Promise.all(Array.from({ length: count }, (_, index) => make(service, `${service}-${index + 1}`, env)));

  const provider = await make('provider', 'provider', {});
  const kafka = { KAFKA_BROKERS: options.kafkaBrokers, ORDERS_TOPIC: topic };
  const orders = await several('orders', options.orders ?? 1, kafka);
  const billing = await several('billing', options.billing ?? 1, {
    ...kafka,
    KAFKA_GROUP: group,
    KAFKA_SESSION_MS: String(options.sessionMs ?? 6_000),
    KAFKA_HEARTBEAT_MS: String(options.heartbeatMs ?? 1_000),
    PROVIDER_URL: provider.address,
  });
  const instances = [provider, ...orders, ...billing];
  const stop = async (): Promise<void> => {
    await Promise.all(instances.map((instance) => instance.stop(STOP_WITHIN_MS)));
  };
  const giveUp = (): void => void stop();
  options.signal?.addEventListener('abort', giveUp);
  try {
    options.signal?.throwIfAborted();
    await Promise.all(instances.map((instance) => instance.start()));
    options.signal?.throwIfAborted();
  } catch (error) {
    await stop();
    throw error;
  } finally {
    options.signal?.removeEventListener('abort', giveUp);
  }
  return { orders, billing, provider, instances, databases, topic, group, logFolder, stop };
}
