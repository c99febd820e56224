import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';

/** One numbered file of the package's `sql` folder. */
export interface MigrationFile {
  /** The file's name without `.sql`; what is recorded, and what a text is known by for ever. */
  readonly name: string;
  /** With `{{schema}}` where the quoted name of the schema goes. */
  readonly text: string;
  readonly checksum: string;
  /**
   * The file begins with the line `-- breaking`: a version of the library that does not know the file cannot work with the
   * schema after it. Other files only add.
   */
  readonly breaking: boolean;
}

const FOLDER = new URL('../../sql/', import.meta.url);

/** The migrations that this version ships, in the order of their names. */
export async function readMigrations(folder: URL = FOLDER): Promise<readonly MigrationFile[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{3}-[a-z0-9-]+\.sql$/.test(name)).sort();
  return Promise.all(names.map(async (name) => parse(name, await readFile(new URL(name, folder), 'utf8'))));
}

function parse(fileName: string, raw: string): MigrationFile {
  // A checkout on Windows must not look like a changed migration.
  const text = raw.replaceAll('\r\n', '\n');
  return {
    name: fileName.slice(0, -'.sql'.length),
    text,
    checksum: createHash('sha256').update(text).digest('hex'),
    breaking: text.startsWith('-- breaking\n'),
  };
}
