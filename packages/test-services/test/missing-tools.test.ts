import { chmod, mkdir, mkdtemp, readdir, readFile, readlink, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { startKafka, startPostgres } from '../src/index.js';
import { fetchedKafkaJars, fetchKafkaJars, kafkaVersion } from '../src/kafka-jars.js';
import { linkLibraries } from '../src/postgres-binaries.js';
import { closedFolderAbove } from '../src/service-folder.js';

let folder: string;
let bin: string;

/** The only tools on this machine are those that `tool` makes, and nothing was fetched before. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replaysafe-test-'));
  bin = join(folder, 'bin');
  await mkdir(bin);
  vi.stubEnv('PATH', bin);
  vi.stubEnv('XDG_CACHE_HOME', join(folder, 'cache'));
  for (const name of ['JAVA_HOME', 'DATABASE_URL', 'KAFKA_BROKERS']) vi.stubEnv(name, '');
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

const tool = async (name: string, script: string): Promise<void> => {
  await writeFile(join(bin, name), `#!/bin/sh\nPATH=/usr/bin:/bin\n${script}\n`);
  await chmod(join(bin, name), 0o755);
};

const messageOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'no error',
    (error: unknown) => (error as Error).message,
  );

describe('without the tools for Kafka', () => {
  it('one message says what to install and what was found', async () => {
    const message = await messageOf(startKafka());
    expect(message).toContain('install Java 17 or newer and Maven');
    expect(message).toContain('start Docker');
    expect(message).toContain('set KAFKA_BROKERS');
    expect(message).toContain('docker: not found; java: not found; mvn: not found');
  });

  it('an old Java and an engine that does not run are told apart from missing ones', async () => {
    await tool('docker', 'echo "Cannot connect to the Docker daemon" >&2; exit 1');
    await tool('java', `echo 'openjdk version "11.0.2" 2019-01-15' >&2`);
    await tool('mvn', 'exit 0');
    const message = await messageOf(startKafka());
    expect(message).toContain('docker: Cannot connect to the Docker daemon');
    expect(message).toContain('java: version 11, and 17 or newer is needed');
    expect(message).not.toContain('mvn:');
  });
});

it('says which given service does not answer, without its password', async () => {
  vi.stubEnv('DATABASE_URL', 'postgresql://app:secret@127.0.0.1:1/app');
  const database = await messageOf(startPostgres());
  expect(database).toContain('DATABASE_URL is set, but no PostgreSQL answers at 127.0.0.1:1');
  expect(database).not.toContain('secret');
  vi.stubEnv('KAFKA_BROKERS', '127.0.0.1:1');
  expect(await messageOf(startKafka())).toContain('KAFKA_BROKERS is set, but no Kafka answers at 127.0.0.1:1');
});

describe('fetching Kafka', () => {
  /** A Maven that notes each run and copies two jars, with `between` them. */
  const maven = (between = ''): Promise<void> =>
    tool(
      'mvn',
      `echo run >> ${folder}/runs
out=$(echo "$*" | sed 's/.*-DoutputDirectory=//')
mkdir -p "$out"; echo one > "$out/one.jar"; ${between}
echo two > "$out/two.jar"`,
    );
  const runs = async (): Promise<number> => (await readFile(join(folder, 'runs'), 'utf8')).trim().split('\n').length;
  const note = vi.fn();

  it('happens once, also when two ask at once', async () => {
    await maven('sleep 0.3');
    const [first, second] = await Promise.all([fetchKafkaJars(note), fetchKafkaJars(note)]);
    expect(first).toBe(second);
    expect(await readdir(first)).toEqual(['one.jar', 'two.jar']);
    expect(await fetchedKafkaJars()).toBe(first);
    expect(await runs()).toBe(1);
  });

  it('is not taken for complete when it ended halfway, and shows what Maven said', async () => {
    await maven('echo "[ERROR] could not reach the repository"; exit 1');
    expect(await messageOf(fetchKafkaJars(note))).toContain('[ERROR] could not reach the repository');
    expect(await fetchedKafkaJars()).toBeUndefined();
    await maven();
    expect(await readdir(await fetchKafkaJars(note))).toEqual(['one.jar', 'two.jar']);
  });

  it('happens again when a file was lost or cut short', async () => {
    await maven();
    const libs = await fetchKafkaJars(note);
    await truncate(join(libs, 'two.jar'), 1);
    expect(await fetchedKafkaJars()).toBeUndefined();
    await fetchKafkaJars(note);
    await rm(join(libs, 'one.jar'));
    await fetchKafkaJars(note);
    expect(await fetchedKafkaJars()).toBe(libs);
    expect(await runs()).toBe(3);
  });

  it('does not wait for the lock of a process that is gone', async () => {
    await maven();
    const cache = join(folder, 'cache', 'replaysafe');
    await mkdir(cache, { recursive: true });
    // No process has this id: it is above the highest that Linux and macOS give.
    await writeFile(join(cache, `kafka-${kafkaVersion}.lock`), '99999999');
    await fetchKafkaJars(note);
    expect(await readdir(cache)).toEqual([`kafka-${kafkaVersion}`]);
  });
});

describe('the PostgreSQL of npm', () => {
  it('gets the links that its install script would make, and keeps those that are there', async () => {
    await mkdir(join(folder, 'native', 'lib'), { recursive: true });
    await writeFile(join(folder, 'native', 'lib', 'libpq.so.5.18'), '');
    await symlink('libpq.so.5.18', join(folder, 'native', 'lib', 'libpq.so'));
    const links = ['libpq.so', 'libpq.so.5'].map((name) => ({
      source: 'native/lib/libpq.so.5.18',
      target: `native/lib/${name}`,
    }));
    await writeFile(join(folder, 'native', 'pg-symlinks.json'), JSON.stringify(links));
    await linkLibraries(folder);
    await linkLibraries(folder);
    for (const name of ['libpq.so', 'libpq.so.5']) {
      expect(await readlink(join(folder, 'native', 'lib', name))).toBe('libpq.so.5.18');
    }
  });

  it('finds the folder above it that the system user may not enter', async () => {
    const user = { uid: 54_321, gid: 54_321 };
    await mkdir(join(folder, 'open', 'inner'), { recursive: true });
    // The folder of a test is closed to others; that is what mkdtemp makes.
    expect(await closedFolderAbove(join(folder, 'open', 'inner'), user)).toBe(folder);
    await chmod(folder, 0o711);
    expect(await closedFolderAbove(join(folder, 'open', 'inner'), user)).toBeUndefined();
  });
});
