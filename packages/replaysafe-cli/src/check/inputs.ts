import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { startOf, type Unreadable } from './finding.js';

export const STDIN = '<stdin>';

export interface InputText {
  readonly file: string;
  readonly text: string;
}

export interface Inputs {
  readonly texts: readonly InputText[];
  readonly unreadable: readonly Unreadable[];
}

/** Reads files, `-` for standard input, and directories with all their `*.yaml` and `*.yml`. */
export async function readInputs(names: readonly string[], input: () => Promise<string>): Promise<Inputs> {
  const texts: InputText[] = [];
  const unreadable: Unreadable[] = [];
  for (const name of names) {
    try {
      if (name === '-') texts.push({ file: STDIN, text: await input() });
      else {
        const files = await filesOf(name);
        if (files.length === 0) unreadable.push({ place: startOf(name), message: 'has no *.yaml or *.yml in it' });
        for (const file of files) texts.push({ file, text: await readFile(file, 'utf8') });
      }
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? String(error);
      unreadable.push({ place: startOf(name), message: `cannot be read: ${code}` });
    }
  }
  return { texts, unreadable };
}

async function filesOf(name: string): Promise<string[]> {
  if (!(await stat(name)).isDirectory()) return [name];
  const found: string[] = [];
  for (const entry of await readdir(name, { withFileTypes: true })) {
    const path = join(name, entry.name);
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    if (entry.isDirectory()) found.push(...(await filesOf(path)));
    else if (/\.ya?ml$/i.test(entry.name)) found.push(path);
  }
  return found.sort();
}
