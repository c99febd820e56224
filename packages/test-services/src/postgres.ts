import { randomBytes } from 'node:crypto';
import { chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { withFreshPorts } from './free-port.js';
import { postgresBinaries, postgresUser } from './postgres-binaries.js';
import { type SystemUser, withServiceFolder } from './service-folder.js';
import { Supervised } from './supervised.js';

/** Options of {@link startPostgres}. */
export interface PostgresOptions {
  /** Server settings beside ours, e.g. `{ deadlock_timeout: '100ms' }`. Only for a server of our own. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /**
   * `false` switches fsync off: faster, and a crash of the operating system may then lose committed rows (a crash of
   * the server alone does not). Default: true.
   */
  readonly fsync?: boolean;
  /** Start a server even if DATABASE_URL is set: for tests that crash it. Default: false. */
  readonly alwaysOwn?: boolean;
}

/** A running PostgreSQL. */
export interface PostgresService {
  /** Connection string of a superuser, to the database `postgres` (or what DATABASE_URL says). */
  readonly url: string;
  /** Whether we started it, so that it may be crashed. */
  readonly own: boolean;
  /** Process id of the server, if it is our own and runs. */
  readonly pid: number | undefined;
  /** Ends the server as a crash does (committed rows stay). Throws for a server that is not our own. */
  crash(): Promise<void>;
  /** Starts it again after {@link crash}, at the same address, and waits until it answers. */
  start(): Promise<void>;
  /** Stops our own server and removes its folder; leaves any other alone. Twice is harmless. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const answers = async (url: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
  } finally {
    await client.end().catch(() => undefined);
  }
};

const foreign = async (url: string): Promise<PostgresService> => {
  await answers(url).catch((cause: unknown) => {
    const at = new URL(url);
    throw new Error(`DATABASE_URL is set, but no PostgreSQL answers at ${at.host}: ${String(cause)}`, { cause });
  });
  const refuse = (): Promise<never> =>
    Promise.reject(new Error('This PostgreSQL is the one DATABASE_URL names; only a server of our own is crashed'));
  return {
    url,
    own: false,
    pid: undefined,
    crash: refuse,
    start: refuse,
    stop: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
};

const begin = async (
  { settings = {}, fsync = true }: PostgresOptions,
  port: number,
  bin: string,
  user: SystemUser | undefined,
  folder: string,
): Promise<PostgresService> => {
  // Superuser of PostgreSQL can run programs: no other user of this machine may connect.
  const password = randomBytes(18).toString('hex');
  const passwordFile = join(folder, 'password');
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (user !== undefined) await chown(passwordFile, user.uid, user.gid);

  const data = join(folder, 'data');
  const everySetting = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    wal_level: 'logical',
    max_connections: 200,
    shared_buffers: '128MB',
    synchronous_commit: 'on',
    fsync: fsync ? 'on' : 'off',
    timezone: 'UTC',
    log_timezone: 'UTC',
    lc_messages: 'C',
    ...settings,
  };
  const as = { cwd: folder, ...user, env: { LC_ALL: 'C', LC_MESSAGES: 'C', TZ: 'UTC' } };
  const service = new Supervised('PostgreSQL', {
    folder,
    prepare: [
      {
        ...as,
        file: join(bin, 'initdb'),
        args: [
          `--pgdata=${data}`,
          '--username=postgres',
          '--auth=scram-sha-256',
          `--pwfile=${passwordFile}`,
          '--encoding=UTF8',
          '--locale=C',
          // The new folder need not outlive a power cut; what is committed later is synced as `fsync` says.
          '--no-sync',
        ],
      },
    ],
    run: {
      ...as,
      file: join(bin, 'postgres'),
      args: [
        '-D',
        data,
        '-p',
        String(port),
        ...Object.entries(everySetting).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
      ],
    },
    // SIGTERM would wait until the last client has left by itself. SIGQUIT leaves without a checkpoint, so that the
    // next start recovers from the log as after a crash, and waits for its children, as SIGKILL does not.
    stopSignal: 'SIGINT',
    crashSignal: 'SIGQUIT',
    stopWithinMs: 10_000,
  });
  const url = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  const ready = (): Promise<void> => service.ready(() => answers(url), 60_000);
  try {
    await ready();
  } catch (error) {
    await service.stop();
    throw error;
  }
  return {
    url,
    own: true,
    get pid() {
      return service.pid;
    },
    crash: () => service.crash(),
    start: async () => {
      await service.start();
      await ready();
    },
    stop: () => service.stop(),
    [Symbol.asyncDispose]: () => service.stop(),
  };
};

/**
 * A real PostgreSQL: the one DATABASE_URL names, else PostgreSQL 18 out of npm in a temporary folder on a free port,
 * with `wal_level=logical` and 200 connections. It is gone when the program that started it is gone, however that
 * ends. Started by root it runs as the system user `postgres`, which is made where there is none.
 */
export const startPostgres = async (options: PostgresOptions = {}): Promise<PostgresService> => {
  const given = process.env['DATABASE_URL'];
  if (given !== undefined && given !== '' && options.alwaysOwn !== true) return foreign(given);
  const user = await postgresUser();
  const bin = await postgresBinaries(user);
  return withFreshPorts(1, ([port]) =>
    withServiceFolder('postgres', user, (folder) => begin(options, port ?? 0, bin, user, folder)),
  );
};

/** A database of its own on a running server. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  /** Ends every connection to the database and drops it. Twice is harmless. */
  drop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const execute = async (url: string, text: string): Promise<void> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
};

/** Creates an empty database on the server of `url`, by default under a name that nobody else has. */
export const createDatabase = async (
  url: string,
  name: string = `test_${randomBytes(8).toString('hex')}`,
): Promise<TestDatabase> => {
  const quoted = pg.escapeIdentifier(name);
  await execute(url, `CREATE DATABASE ${quoted}`);
  const own = new URL(url);
  own.pathname = `/${encodeURIComponent(name)}`;
  const drop = (): Promise<void> => execute(url, `DROP DATABASE IF EXISTS ${quoted} WITH (FORCE)`);
  return { url: own.href, name, drop, [Symbol.asyncDispose]: drop };
};
