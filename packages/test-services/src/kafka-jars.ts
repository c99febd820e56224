import { execFile } from 'node:child_process';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Version of Apache Kafka that is fetched, by Maven as by Docker. */
export const kafkaVersion = '4.4.0';

const artifacts = [
  ['org.apache.kafka', 'kafka_2.13', kafkaVersion],
  ['org.apache.logging.log4j', 'log4j-slf4j-impl', '2.24.3'],
] as const;

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>replaysafe</groupId>
  <artifactId>kafka-for-tests</artifactId>
  <version>1</version>
  <dependencies>
${artifacts
  .map(
    ([group, artifact, version]) =>
      `    <dependency><groupId>${group}</groupId><artifactId>${artifact}</artifactId><version>${version}</version></dependency>`,
  )
  .join('\n')}
  </dependencies>
</project>
`;

/** Folder that keeps what was fetched between runs: below XDG_CACHE_HOME, else below ~/.cache. */
export const cacheFolder = (): string => {
  const base = process.env['XDG_CACHE_HOME'];
  return join(base === undefined || base === '' ? join(homedir(), '.cache') : base, 'replaysafe');
};

const filesOf = async (folder: string): Promise<Record<string, number>> => {
  const names = await readdir(folder);
  const sizes = await Promise.all(names.map(async (name) => [name, (await stat(join(folder, name))).size] as const));
  return Object.fromEntries(sizes);
};

/** Whether every file is there in the size that was noted when the fetch had ended. */
const isComplete = async (folder: string): Promise<boolean> => {
  try {
    const noted = JSON.parse(await readFile(join(folder, 'files.json'), 'utf8')) as Record<string, number>;
    const found = await filesOf(join(folder, 'libs'));
    return Object.keys(noted).length > 0 && Object.entries(noted).every(([name, size]) => found[name] === size);
  } catch {
    return false;
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

const staleAfterMs = 15 * 60_000;

/**
 * Lets one process at a time fetch: two Mavens at once would write the same files of their local repository. The lock
 * of a process that was killed is not honoured. Should two get past it all the same, both still end with a whole copy,
 * for each fetches into a folder of its own and renames it.
 */
const withLock = async <T>(file: string, use: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      const lock = await open(file, 'wx');
      await lock.writeFile(String(process.pid));
      await lock.close();
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const [text, info] = await Promise.all([readFile(file, 'utf8').catch(() => ''), stat(file).catch(() => undefined)]);
    const ageMs = info === undefined ? 0 : Date.now() - info.mtimeMs;
    const ownerGone = text === '' ? ageMs > 5_000 : !isAlive(Number(text));
    if (ownerGone || ageMs > staleAfterMs) await rm(file, { force: true });
    else await sleep(250);
  }
  try {
    return await use();
  } finally {
    await rm(file, { force: true });
  }
};

/** Folder with the jars of Apache Kafka, if it was fetched before. */
export const fetchedKafkaJars = async (): Promise<string | undefined> => {
  const folder = join(cacheFolder(), `kafka-${kafkaVersion}`);
  return (await isComplete(folder)) ? join(folder, 'libs') : undefined;
};

/** Fetches the jars of Apache Kafka through Maven (45 files, 43 MB), once for this user, and gives their folder. */
export const fetchKafkaJars = async (note: (text: string) => void): Promise<string> => {
  const cache = cacheFolder();
  const folder = join(cache, `kafka-${kafkaVersion}`);
  await mkdir(cache, { recursive: true });
  return withLock(`${folder}.lock`, async () => {
    if (await isComplete(folder)) return join(folder, 'libs');
    note(`Fetching Apache Kafka ${kafkaVersion} through Maven into ${folder} (43 MB, once)`);
    const partial = `${folder}.partial-${process.pid}`;
    await rm(partial, { recursive: true, force: true });
    await mkdir(partial);
    await writeFile(join(partial, 'pom.xml'), pom);
    try {
      await run(
        'mvn',
        [
          '--batch-mode',
          '--no-transfer-progress',
          'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies',
          `-DoutputDirectory=${join(partial, 'libs')}`,
        ],
        { cwd: partial, timeout: 10 * 60_000, maxBuffer: 64 * 1024 * 1024 },
      );
      await writeFile(join(partial, 'files.json'), JSON.stringify(await filesOf(join(partial, 'libs'))));
      await rm(folder, { recursive: true, force: true });
      await rename(partial, folder);
    } catch (cause) {
      await rm(partial, { recursive: true, force: true });
      const { stdout = '', message } = cause as Error & { stdout?: string };
      throw new Error(`Maven could not fetch Apache Kafka ${kafkaVersion}: ${message}\n${stdout.slice(-4_000)}`, {
        cause,
      });
    }
    return join(folder, 'libs');
  });
};
