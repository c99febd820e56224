import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { type ServiceConfig } from '../programs/lifecycle-service.js';

export interface Line {
  readonly mark?: string;
  readonly level?: string;
  readonly message?: string;
  readonly [field: string]: unknown;
}

export interface Service {
  readonly port: number;
  /** 0 without a management server. */
  readonly managementPort: number;
  readonly url: string;
  readonly lines: readonly Line[];
  kill(signal: NodeJS.Signals): void;
  /** The first line that matches, waited for. */
  line(matches: (line: Line) => boolean): Promise<Line>;
  marked(mark: string): Promise<Line>;
  /** Index of the first such line; fails where there is none. */
  indexOf(matches: (line: Line) => boolean): number;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly stderr: () => string;
}

const program = fileURLToPath(new URL('../programs/lifecycle-service.ts', import.meta.url));

// Not onTestFinished: without the context of its test it knows not which of several concurrent tests it was called from,
// and then ends the service of another in mid-test.
const ends: (() => Promise<unknown>)[] = [];
afterAll(() => Promise.all(ends.map((end) => end())));

/** Starts the test service in a process of its own and waits until it is up. */
export async function startService(config: ServiceConfig = {}): Promise<Service> {
  const child = spawn(process.execPath, ['--import', 'tsx', program, JSON.stringify(config)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  ends.push(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const { lines, line } = readLines(child);
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));

  const marked = (mark: string): Promise<Line> => line((candidate) => candidate.mark === mark);
  const { port, managementPort = 0 } = (await Promise.race([
    marked('up'),
    exited.then(({ code }) => {
      throw new Error(`the service ended with ${String(code)} before it was up: ${stderr}`);
    }),
  ])) as unknown as { port: number; managementPort?: number };

  return {
    port,
    managementPort,
    url: `http://127.0.0.1:${port}`,
    lines,
    line,
    marked,
    exited,
    stderr: () => stderr,
    kill: (signal) => child.kill(signal),
    indexOf: (matches) => {
      const index = lines.findIndex(matches);
      if (index < 0) throw new Error(`no such line in: ${JSON.stringify(lines, null, 1)}`);
      return index;
    },
  };
}

function readLines(child: ChildProcess) {
  const lines: Line[] = [];
  let waiting: { matches: (line: Line) => boolean; resolve: (line: Line) => void }[] = [];
  createInterface({ input: child.stdout! }).on('line', (text) => {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    waiting = waiting.filter(({ matches, resolve }) => {
      if (matches(line)) resolve(line);
      return !matches(line);
    });
  });
  const line = (matches: (line: Line) => boolean): Promise<Line> => {
    const known = lines.find(matches);
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => waiting.push({ matches, resolve }));
  };
  return { lines, line };
}
