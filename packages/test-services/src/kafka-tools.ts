import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchedKafkaJars, fetchKafkaJars } from './kafka-jars.js';

const run = promisify(execFile);

/** How a Kafka of our own can be run on this machine. */
export type KafkaRuntime =
  { readonly kind: 'docker' } | { readonly kind: 'java'; readonly java: string; readonly jars: string };

const reason = (error: unknown): string => {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOENT') return 'not found';
  return (stderr?.trim() ?? '').split('\n').at(-1) || message;
};

const docker = async (): Promise<string | undefined> => {
  try {
    await run('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 15_000 });
    await run('docker', ['compose', 'version'], { timeout: 15_000 });
    return undefined;
  } catch (error) {
    return `docker: ${reason(error)}`;
  }
};

const javaFile = (): string => {
  const home = process.env['JAVA_HOME'];
  return home === undefined || home === '' ? 'java' : join(home, 'bin', 'java');
};

const java = async (): Promise<string | undefined> => {
  try {
    const { stderr, stdout } = await run(javaFile(), ['-version'], { timeout: 30_000 });
    const [, major] = /version "(?:1\.)?(\d+)/.exec(stderr + stdout) ?? [];
    return Number(major) >= 17 ? undefined : `java: version ${major ?? 'unknown'}, and 17 or newer is needed`;
  } catch (error) {
    return `java: ${reason(error)}`;
  }
};

const maven = async (): Promise<string | undefined> => {
  if ((await fetchedKafkaJars()) !== undefined) return undefined;
  try {
    await run('mvn', ['-version'], { timeout: 60_000 });
    return undefined;
  } catch (error) {
    return `mvn: ${reason(error)}`;
  }
};

const advice = (seen: readonly string[]): string =>
  [
    'Apache Kafka is needed and cannot be started on this machine. Do one of these:',
    '  - install Java 17 or newer and Maven (Debian, Ubuntu: apt-get install openjdk-17-jre-headless maven; macOS: brew install openjdk maven)',
    '  - start Docker with its compose plugin',
    '  - set KAFKA_BROKERS to a running broker, for example KAFKA_BROKERS=127.0.0.1:9092',
    ...(seen.length === 0 ? [] : [`What was found: ${seen.join('; ')}`]),
  ].join('\n');

/** What runs Kafka here: a Docker engine, else Java with the jars that Maven fetches. Throws one message that says what to install. */
export const kafkaRuntime = async (note: (text: string) => void): Promise<KafkaRuntime> => {
  const noDocker = await docker();
  if (noDocker === undefined) return { kind: 'docker' };
  return javaRuntime(note, [noDocker]);
};

/** Java with the jars of Kafka. `seen` says why nothing else would do. */
export const javaRuntime = async (note: (text: string) => void, seen: readonly string[]): Promise<KafkaRuntime> => {
  const missing = (await Promise.all([java(), maven()])).filter((text) => text !== undefined);
  if (missing.length > 0) throw new Error(advice([...seen, ...missing]));
  return { kind: 'java', java: javaFile(), jars: (await fetchedKafkaJars()) ?? (await fetchKafkaJars(note)) };
};
