import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { ERRORS } from '../packages/replaysafe/src/errors.js';
import { EVENTS } from '../packages/replaysafe/src/events.js';
import { localLinks, tableRows } from './markdown.js';

const root = resolve(import.meta.dirname, '..');
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8');

test('docs/errors.md says what the table of errors says', async () => {
  const rows = tableRows(await read('docs/errors.md')).map(([code, message, status, retryable]) => [
    code,
    message,
    status,
    retryable,
  ]);
  expect(rows).toEqual(
    Object.entries(ERRORS).map(([code, { message, status, retryable }]) => [
      `\`${code}\``,
      message,
      String(status),
      retryable ? 'yes' : 'no',
    ]),
  );
});

test('docs/events.md says what the table of events says', async () => {
  const rows = tableRows(await read('docs/events.md')).map(([name, durable, when]) => [name, durable, when]);
  expect(rows).toEqual(
    Object.entries(EVENTS).map(([name, { durable, when }]) => [`\`replaysafe:${name}\``, durable ? 'yes' : 'no', when]),
  );
});

test('docs/rules.md names every rule of the standard once', async () => {
  const rows = tableRows(await read('docs/rules.md'));
  const codes = rows.map(([code]) => code);
  expect(new Set(codes).size).toBe(codes.length);
  expect(codes.length).toBeGreaterThan(40);
  expect(rows.filter((cells) => cells.length !== 4 || cells.some((cell) => cell === ''))).toEqual([]);
});

test('no link in the documentation is broken', async () => {
  const broken: string[] = [];
  for (const page of await pages()) {
    for (const target of localLinks(await read(page))) {
      if (!existsSync(join(root, dirname(page), target))) broken.push(`${page} -> ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

test('every npm word that the documentation names exists', async () => {
  const { scripts } = JSON.parse(await read('package.json')) as { scripts: Record<string, string> };
  const named = new Set<string>();
  for (const page of await pages()) {
    for (const [, word] of (await read(page)).matchAll(/npm run (?:-s )?([a-z][\w:-]*)/g)) named.add(word!);
  }
  expect([...named].filter((word) => !(word in scripts))).toEqual([]);
  expect(named).toContain('demo');
});

async function pages(): Promise<string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  return (
    found
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => relative(root, join(entry.parentPath, entry.name)))
      .filter((path) => !path.includes('node_modules') && !path.includes('dist/'))
      // The root's README, copied there while the library is packed.
      .filter((path) => path !== join('packages', 'replaysafe', 'README.md'))
  );
}
