import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kafkaVersion } from './kafka-jars.js';
import { type KafkaRuntime } from './kafka-tools.js';
import { type Command, type ServiceSpec } from './supervisor-messages.js';

/** Where the broker listens, all on 127.0.0.1. */
export interface KafkaPorts {
  readonly direct: number;
  /** Listener whose clients are told to connect to `advertised` instead: the port of a proxy. */
  readonly proxied: number;
  readonly controller: number;
  readonly advertised: number;
}

/** Settings of a broker for tests: one node, groups that form at once, short sessions, topics only on request. */
const testSettings = {
  'offsets.topic.replication.factor': 1,
  'offsets.topic.num.partitions': 8,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
  'transaction.state.log.num.partitions': 8,
  'share.coordinator.state.topic.replication.factor': 1,
  'share.coordinator.state.topic.min.isr': 1,
  'share.coordinator.state.topic.num.partitions': 8,
  'group.initial.rebalance.delay.ms': 0,
  'group.min.session.timeout.ms': 500,
  'auto.create.topics.enable': false,
};

const log4j = `status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
`;

type Processes = Pick<ServiceSpec, 'prepare' | 'run' | 'cleanup' | 'crashCommand'>;

const javaCommands = async (
  { java, jars }: { readonly java: string; readonly jars: string },
  folder: string,
  ports: KafkaPorts,
  settings: Readonly<Record<string, string | number | boolean>>,
): Promise<Processes> => {
  const properties = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.bootstrap.servers': `127.0.0.1:${ports.controller}`,
    listeners: `DIRECT://127.0.0.1:${ports.direct},PROXIED://127.0.0.1:${ports.proxied},CONTROLLER://127.0.0.1:${ports.controller}`,
    'advertised.listeners': `DIRECT://127.0.0.1:${ports.direct},PROXIED://127.0.0.1:${ports.advertised},CONTROLLER://127.0.0.1:${ports.controller}`,
    'inter.broker.listener.name': 'DIRECT',
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'DIRECT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': join(folder, 'data'),
    ...testSettings,
    ...settings,
  };
  const config = join(folder, 'server.properties');
  const logging = join(folder, 'log4j2.properties');
  await writeFile(
    config,
    Object.entries(properties)
      .map(([name, value]) => `${name}=${String(value).replaceAll('\\', '\\\\')}\n`)
      .join(''),
  );
  await writeFile(logging, log4j);
  const command = (args: readonly string[], options: readonly string[] = []): Command => ({
    file: java,
    args: [`-Dlog4j2.configurationFile=${logging}`, ...options, '-cp', [join(jars, '*')].join(delimiter), ...args],
    cwd: folder,
  });
  // Kafka's ids are 16 bytes in base64url; an x in front keeps it from being read as an option.
  const clusterId = `x${randomBytes(16).toString('base64url').slice(1)}`;
  return {
    prepare: [command(['kafka.tools.StorageTool', 'format', '--standalone', '-t', clusterId, '-c', config])],
    run: command(['kafka.Kafka', config], ['-Xmx1g']),
  };
};

const composeFile = fileURLToPath(new URL('../../../compose.yaml', import.meta.url));

const dockerCommands = (
  ports: KafkaPorts,
  settings: Readonly<Record<string, string | number | boolean>>,
): Processes => {
  const project = `replaysafe-${randomBytes(6).toString('hex')}`;
  const env = {
    KAFKA_VERSION: kafkaVersion,
    KAFKA_PORT: String(ports.direct),
    KAFKA_PROXIED_PORT: String(ports.proxied),
    KAFKA_ADVERTISED_PORT: String(ports.advertised),
  };
  if (Object.keys(settings).length > 0) {
    throw new Error('Extra broker settings are only possible for a Kafka run by java, not by Docker');
  }
  const compose = (...args: string[]): Command => ({
    file: 'docker',
    args: ['compose', '--project-name', project, '--file', composeFile, ...args],
    env,
  });
  return {
    // Fetches the image where it is missing.
    prepare: [compose('create', 'kafka')],
    run: compose('up', '--no-color', 'kafka'),
    // Killing the client would leave the container running.
    crashCommand: compose('kill', 'kafka'),
    cleanup: [compose('down', '--volumes', '--timeout', '5')],
  };
};

/** What the supervisor is to run for a broker. */
export const kafkaCommands = (
  runtime: KafkaRuntime,
  folder: string,
  ports: KafkaPorts,
  settings: Readonly<Record<string, string | number | boolean>>,
): Promise<Processes> =>
  runtime.kind === 'java'
    ? javaCommands(runtime, folder, ports, settings)
    : Promise.resolve(dockerCommands(ports, settings));
