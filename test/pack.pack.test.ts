import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeBlocks } from './markdown.js';

/**
 * Packs the library as it would be published, installs the tarball into an empty application outside the repository and uses it from there:
 * what the repository resolves by accident, a user's application does not.
 */
const run = promisify(execFile);
const root = resolve(import.meta.dirname, '..');
const library = join(root, 'packages/replaysafe');

interface Manifest {
  exports: Record<string, unknown>;
  devDependencies: Record<string, string>;
}

let app: string;
let tarball: string;
let doors: string[];

beforeAll(async () => {
  app = await mkdtemp(join(tmpdir(), 'replaysafe-pack-'));
  await run('npm', ['run', '--silent', 'build'], { cwd: root });
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', app], { cwd: library });
  tarball = join(app, packedName(stdout));

  const manifest = await json<Manifest>(join(library, 'package.json'));
  const own = await json<Manifest>(join(root, 'package.json'));
  doors = Object.keys(manifest.exports)
    .filter((path) => path !== './package.json')
    .map((path) => path.replace(/^\./, 'replaysafe'));
  const peers = ['@nestjs/common', '@nestjs/core', 'reflect-metadata', 'rxjs', 'fastify'];
  const needed = [...peers, 'kafkajs', 'pg'].map((name) => `${name}@${manifest.devDependencies[name]!}`);
  const types = ['@types/node', '@types/pg', 'prom-client'].map((name) => `${name}@${own.devDependencies[name]!}`);
  await writeFile(join(app, 'package.json'), '{ "name": "app", "private": true, "type": "module" }');
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball, ...needed, ...types], {
    cwd: app,
  });
});

afterAll(async () => {
  await rm(app, { recursive: true, force: true });
});

test('the package carries its README, its license and its migrations', async () => {
  const installed = join(app, 'node_modules/replaysafe');
  expect(await readFile(join(installed, 'README.md'), 'utf8')).toBe(await readFile(join(root, 'README.md'), 'utf8'));
  expect(await readdir(installed)).toEqual(expect.arrayContaining(['LICENSE', 'dist', 'sql']));
  expect((await readdir(join(installed, 'sql'))).length).toBeGreaterThan(3);
});

test('every door opens as an ES module and gives something', async () => {
  await put(
    'doors.mjs',
    `for (const door of ${JSON.stringify(doors)}) console.log(door, Object.keys(await import(door)).length);`,
  );
  const { stdout } = await run(process.execPath, ['doors.mjs'], { cwd: app });
  expect(counts(stdout)).toEqual(doors.map((door) => [door, expect.any(Number) as number]));
  expect(counts(stdout).filter(([, names]) => names === 0)).toEqual([]);
});

test('every door opens by require from CommonJS', async () => {
  await put(
    'doors.cjs',
    `for (const door of ${JSON.stringify(doors)}) console.log(door, Object.keys(require(door)).length);`,
  );
  const { stdout } = await run(process.execPath, ['--disable-warning=ExperimentalWarning', 'doors.cjs'], { cwd: app });
  expect(counts(stdout).map(([door]) => door)).toEqual(doors);
});

test('importing a door does nothing: no handle, no listener, no output', async () => {
  await put(
    'idle.mjs',
    `for (const door of ${JSON.stringify(doors)}) await import(door);
     const listeners = ['SIGTERM', 'SIGINT', 'uncaughtException', 'unhandledRejection', 'beforeExit'].map((name) => process.listenerCount(name));
     process.stdout.write(JSON.stringify(listeners));`,
  );
  const { stdout } = await run(process.execPath, ['idle.mjs'], { cwd: app, timeout: 10_000 });
  expect(stdout).toBe('[0,0,0,0,0]');
});

test('every door has types, and the code of the README compiles, under nodenext from both kinds of module', async () => {
  await put('nodenext/doors.mts', importsOfAllDoors());
  await put('nodenext/doors.cts', importsOfAllDoors());
  const blocks = codeBlocks(await readFile(join(root, 'README.md'), 'utf8'), 'ts');
  expect(blocks.length).toBeGreaterThan(0);
  for (const [index, block] of blocks.entries()) await put(`nodenext/readme-${index}.ts`, `${block}\nexport {};\n`);
  // The library's own declarations are checked too, once.
  await typecheck('nodenext', { module: 'nodenext', moduleResolution: 'nodenext', skipLibCheck: false });
});

test('every door has types under bundler', async () => {
  await put('bundler/doors.ts', importsOfAllDoors());
  await typecheck('bundler', { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true });
});

test('publint finds nothing', async () => {
  const { publint } = await import('publint');
  const { messages } = await publint({ pkgDir: library, strict: true });
  expect(messages).toEqual([]);
});

test('are the types wrong? no', async () => {
  // Node >= 20.19 requires ES modules: a CommonJS import that resolves to one is what we support, not a mistake.
  const { stdout } = await run(
    'npx',
    ['attw', tarball, '--profile', 'node16', '--ignore-rules', 'cjs-resolves-to-esm', '--no-color'],
    {
      cwd: root,
    },
  );
  // It ends with 1 on any problem; node10 knows no exports maps and is not looked at.
  expect(stdout).toContain('🟢 (ESM)');
});

async function typecheck(folder: string, options: object): Promise<void> {
  const typeRoots = [join(app, 'node_modules/@types')];
  const compilerOptions = { ...options, target: 'es2023', strict: true, noEmit: true, types: ['node'], typeRoots };
  await put(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['.'] }));
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  const { stdout } = await run(process.execPath, [compiler, '-p', folder], { cwd: app }).catch(
    (error: unknown) => error as { stdout: string },
  );
  expect(stdout).toBe('');
}

function importsOfAllDoors(): string {
  const imports = doors.map((door, index) => `import * as door${index} from '${door}';`);
  return [...imports, `export const all = [${doors.map((_, index) => `door${index}`).join(', ')}];`, ''].join('\n');
}

async function put(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(app, path)), { recursive: true });
  await writeFile(join(app, path), content);
}

async function json<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(path, 'utf8')) as T;
}

/** npm up to 11 prints a list, npm 12 an object by package name. */
function packedName(stdout: string): string {
  const [packed] = Object.values(JSON.parse(stdout) as Record<string, { filename: string }>);
  return packed!.filename;
}

function counts(stdout: string): [string, number][] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([door, names]) => [door!, Number(names)]);
}
