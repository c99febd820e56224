import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readMigrations, type MigrationFile } from '../../src/migrate/files.js';
import { migrationText } from '../../src/migrate/sql.js';
import { compare } from '../../src/migrate/states.js';

let folder: string;
let files: readonly MigrationFile[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'replaysafe-migrations-'));
  await writeFile(join(folder, '020-b.sql'), 'create table {{schema}}.b ();\r\ncreate table {{schema}}.c ();\n');
  await writeFile(join(folder, '010-a.sql'), '-- breaking\ndrop table {{schema}}.a;\n');
  await writeFile(join(folder, 'README.md'), 'no migration');
  files = await readMigrations(pathToFileURL(`${folder}/`));
});

afterAll(() => rm(folder, { recursive: true }));

test('reads numbered files only, in the order of their names', () => {
  expect(files.map((file) => file.name)).toEqual(['010-a', '020-b']);
});

test('a file says in its first line that it breaks older versions', () => {
  expect(files.map((file) => file.breaking)).toEqual([true, false]);
});

test('line ends do not change what a file is', async () => {
  await writeFile(join(folder, '020-b.sql'), 'create table {{schema}}.b ();\ncreate table {{schema}}.c ();\n');
  const again = await readMigrations(pathToFileURL(`${folder}/`));
  expect(again[1]?.checksum).toBe(files[1]?.checksum);
});

test('the schema is put in wherever it is named', () => {
  expect(migrationText(files[1]!.text, '"mine"')).toContain('create table "mine".b ();\ncreate table "mine".c ();');
});

test('a lower number that arrives later is pending, and only that', () => {
  const recorded = [{ name: '020-b', checksum: files[1]!.checksum, breaking: false, appliedAt: new Date(0) }];
  const state = compare(files, recorded);
  expect(state.pending.map((file) => file.name)).toEqual(['010-a']);
  expect(state.changed).toEqual([]);
});

test('the files that ship have distinct numbers within their rooms and start with the schema', async () => {
  const shipped = (await readMigrations()).map((file) => file.name);
  expect(shipped[0]).toBe('000-migrate-schema');
  expect(new Set(shipped.map((name) => name.slice(0, 3))).size).toBe(shipped.length);
});
