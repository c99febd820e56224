import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));

export interface Service {
  readonly url: string;
  readonly exited: Promise<unknown>;
  kill(signal: NodeJS.Signals): void;
}

export interface Answer {
  readonly status: number;
  /** The service has told this client to leave. */
  readonly close: boolean;
  readonly body: string;
}

const children: ChildProcess[] = [];

/** Starts the built service in a process of its own and waits until it listens. */
export async function startService(env: Readonly<Record<string, string>>): Promise<Service> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const exited = once(child, 'close');
  for await (const line of createInterface(child.stdout)) {
    if (!line.startsWith('{')) continue;
    const { listening } = JSON.parse(line) as { listening: number };
    child.stdout.resume();
    return { url: `http://127.0.0.1:${listening}`, exited, kill: (signal) => void child.kill(signal) };
  }
  throw new Error(`the service ended before it listened: ${String(await exited)}`);
}

export function killAll(): void {
  for (const child of children.splice(0)) child.kill('SIGKILL');
}

/** One client with one connection, which it keeps as long as it may. */
export function createCustomer(): { order(url: string, sku: string): Promise<Answer>; leave(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    leave: () => {
      agent.destroy();
    },
    order: (url, sku) =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json' };
        const sent = request(`${url}/orders`, { method: 'POST', agent, headers }, (response) => {
          let body = '';
          response.on('data', (chunk: Buffer) => (body += chunk.toString()));
          response.on('error', reject);
          response.on('end', () => {
            resolve({ status: response.statusCode ?? 0, close: response.headers.connection === 'close', body });
          });
        });
        sent.on('error', reject);
        sent.end(JSON.stringify({ sku, quantity: 1 }));
      }),
  };
}
