import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { withFreshPorts } from './free-port.js';
import { kafkaCommands, type KafkaPorts } from './kafka-commands.js';
import { javaRuntime, kafkaRuntime, type KafkaRuntime } from './kafka-tools.js';
import { withServiceFolder } from './service-folder.js';
import { Supervised } from './supervised.js';

/** Options of {@link startKafka}. */
export interface KafkaOptions {
  /** Broker settings beside ours, e.g. `{ 'num.partitions': 3 }`. Only for a broker of our own run by java. */
  readonly settings?: Readonly<Record<string, string | number | boolean>>;
  /** Start a broker even if KAFKA_BROKERS is set: for tests that crash it. Default: false. */
  readonly alwaysOwn?: boolean;
  /** Told when a start takes long because Kafka is fetched first. Default: standard error. */
  readonly note?: (text: string) => void;
}

/**
 * Clients of Kafka connect to the address the broker advertises, so a proxy is only passed if the broker knows of it:
 * those who come in at `target` are told port `advertisedPort` of 127.0.0.1, on which a proxy to `target` listens.
 */
export interface ProxiedListener {
  readonly target: { readonly host: string; readonly port: number };
  readonly advertisedPort: number;
}

/** A running Apache Kafka. */
export interface KafkaService {
  /** Addresses to give to a client, joined by commas. */
  readonly brokers: string;
  /** Whether we started it, so that it may be crashed and has our settings (sessions down to 500 ms). */
  readonly own: boolean;
  /** Process id of the broker, if it is our own, run by java, and runs. */
  readonly pid: number | undefined;
  /** For {@link startProxyToKafka}; only a broker of our own has it. */
  readonly proxied: ProxiedListener | undefined;
  /** Ends the broker as a crash does (its log stays). Throws for a broker that is not our own. */
  crash(): Promise<void>;
  /** Starts it again after {@link crash}, at the same address, and waits until it answers. */
  start(): Promise<void>;
  /** Stops our own broker and removes its folder; leaves any other alone. Twice is harmless. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const adminOf = (brokers: string): kafkajs.Admin =>
  new kafkajs.Kafka({
    clientId: 'replaysafe-test-services',
    brokers: brokers.split(',').map((broker) => broker.trim()),
    logLevel: kafkajs.logLevel.NOTHING,
    connectionTimeout: 2_000,
    requestTimeout: 10_000,
    retry: { retries: 0 },
  }).admin();

const withAdmin = async <T>(brokers: string, use: (admin: kafkajs.Admin) => Promise<T>): Promise<T> => {
  const admin = adminOf(brokers);
  try {
    await admin.connect();
    return await use(admin);
  } finally {
    await admin.disconnect();
  }
};

/** An open port is not enough: groups can only be joined once the coordinator has its topic. */
const coordinatorAnswers = (brokers: string): Promise<unknown> =>
  withAdmin(brokers, async (admin) => {
    // Without this kafkajs knows no broker to ask for the coordinator.
    await admin.describeCluster();
    await admin.fetchOffsets({ groupId: 'replaysafe-test-services', topics: [] });
  });

const foreign = async (brokers: string): Promise<KafkaService> => {
  await coordinatorAnswers(brokers).catch((cause: unknown) => {
    throw new Error(`KAFKA_BROKERS is set, but no Kafka answers at ${brokers}: ${String(cause)}`, { cause });
  });
  const refuse = (): Promise<never> =>
    Promise.reject(new Error('This Kafka is the one KAFKA_BROKERS names; only a broker of our own is crashed'));
  return {
    brokers,
    own: false,
    pid: undefined,
    proxied: undefined,
    crash: refuse,
    start: refuse,
    stop: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
};

/** By Docker the image is fetched within this time. */
const readyWithinMs = { docker: 600_000, java: 180_000 };

const begin = async (
  runtime: KafkaRuntime,
  options: KafkaOptions,
  ports: KafkaPorts,
  folder: string,
): Promise<KafkaService> => {
  const service = new Supervised('Kafka', {
    folder,
    ...(await kafkaCommands(runtime, folder, ports, options.settings ?? {})),
    stopSignal: 'SIGTERM',
    crashSignal: 'SIGKILL',
    stopWithinMs: 15_000,
  });
  const brokers = `127.0.0.1:${ports.direct}`;
  const ready = (): Promise<void> => service.ready(() => coordinatorAnswers(brokers), readyWithinMs[runtime.kind]);
  try {
    await ready();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return {
    brokers,
    own: true,
    get pid() {
      return runtime.kind === 'java' ? service.pid : undefined;
    },
    proxied: { target: { host: '127.0.0.1', port: ports.proxied }, advertisedPort: ports.advertised },
    crash: () => service.crash(),
    start: async () => {
      await service.start();
      await ready();
    },
    stop: () => service.stop(),
    [Symbol.asyncDispose]: () => service.stop(),
  };
};

const startOwn = (runtime: KafkaRuntime, options: KafkaOptions): Promise<KafkaService> =>
  withFreshPorts(4, ([direct = 0, proxied = 0, controller = 0, advertised = 0]) =>
    withServiceFolder('kafka', undefined, (folder) =>
      begin(runtime, options, { direct, proxied, controller, advertised }, folder),
    ),
  );

/**
 * A real Apache Kafka: the one KAFKA_BROKERS names, else a container if a Docker engine runs, else a single node run
 * by java, fetched once through Maven into the user's cache. It answers to groups when the promise is fulfilled, makes
 * no topics by itself ({@link createTopics} does), and is gone when the program that started it is gone, however that
 * ends. If none can be had, the error says what to install.
 */
export const startKafka = async (options: KafkaOptions = {}): Promise<KafkaService> => {
  const given = process.env['KAFKA_BROKERS'];
  if (given !== undefined && given !== '' && options.alwaysOwn !== true) return foreign(given);
  const note =
    options.note ??
    ((text: string) => {
      console.error(text);
    });
  const runtime = await kafkaRuntime(note);
  try {
    return await startOwn(runtime, options);
  } catch (error) {
    if (runtime.kind !== 'docker') throw error;
    // The engine runs and yet the image cannot be had (no network, a limit of the registry): java may still do.
    note(`Kafka could not be started by Docker, trying java: ${String(error)}`);
    return startOwn(await javaRuntime(note, [`docker: ${String(error)}`]), options);
  }
};

/** A topic to create. */
export interface NewTopic {
  readonly topic: string;
  /** Default: 1. */
  readonly partitions?: number;
}

const leadersWithinMs = 10_000;

/** A topic that was just made is not known everywhere in the broker at once: asked too early, it says there is none. */
const leadersKnown = async (admin: kafkajs.Admin, topics: readonly string[]): Promise<void> => {
  const until = performance.now() + leadersWithinMs;
  for (;;) {
    try {
      const { topics: found } = await admin.fetchTopicMetadata({ topics: [...topics] });
      if (found.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return;
      if (performance.now() > until) throw new Error(`No leader for every partition of ${topics.join(', ')}`);
    } catch (error) {
      const { type } = error as { type?: string };
      const early = type === 'UNKNOWN_TOPIC_OR_PARTITION' || type === 'LEADER_NOT_AVAILABLE';
      if (!early || performance.now() > until) throw error;
    }
    await sleep(20);
  }
};

/** Creates topics that are not there yet, and waits until their partitions have a leader. */
export const createTopics = async (brokers: string, topics: readonly NewTopic[]): Promise<void> => {
  await withAdmin(brokers, async (admin) => {
    await admin.createTopics({
      topics: topics.map(({ topic, partitions = 1 }) => ({ topic, numPartitions: partitions })),
      waitForLeaders: false,
      timeout: 10_000,
    });
    await leadersKnown(
      admin,
      topics.map(({ topic }) => topic),
    );
  });
};
