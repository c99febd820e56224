import { chown, mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, parse } from 'node:path';

/** System user that a service runs as, when not the one who starts it. */
export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Makes the temporary folder of a service, gives it to `user`, and hands it to `use`; removed again if that throws.
 * It lies directly under the system's temporary folder: a system user often may not enter any other.
 */
export const withServiceFolder = async <T>(
  name: string,
  user: SystemUser | undefined,
  use: (folder: string) => Promise<T>,
): Promise<T> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), `replaysafe-${name}-`)));
  try {
    if (user !== undefined) await chown(folder, user.uid, user.gid);
    return await use(folder);
  } catch (error) {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  }
};

/** The outermost folder above `path` that `user` may not enter, if there is one. */
export const closedFolderAbove = async (path: string, user: SystemUser): Promise<string | undefined> => {
  const above: string[] = [];
  for (let folder = dirname(await realpath(path)); folder !== parse(folder).root; folder = dirname(folder)) {
    above.unshift(folder);
  }
  for (const folder of above) {
    const { mode, uid, gid } = await stat(folder);
    const enter = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001;
    if ((mode & enter) === 0) return folder;
  }
  return undefined;
};
