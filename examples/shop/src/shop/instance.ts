import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const READY_WITHIN_MS = 60_000;
/** A process that dies so often before it is ready will not get ready. */
const HOPELESS_DEATHS = 4;
const LOOK_EVERY_MS = 50;
/** A process that keeps dying young is started ever more slowly. */
const RESTART_MS = { first: 50, longest: 2_000, youngBelow: 2_000 };

export type ServiceName = 'orders' | 'billing' | 'provider';
export type InstanceState = 'starting' | 'ready' | 'stopping' | 'down';

export interface InstanceOptions {
  readonly service: ServiceName;
  /** `orders-1`; also the name of its log. */
  readonly name: string;
  readonly port: number;
  /** All that the process gets beside PATH and HOME. */
  readonly env: Readonly<Record<string, string>>;
  /** Arguments for `node` itself, e.g. `--import`. */
  readonly nodeArgs?: readonly string[];
  readonly logFile: string;
  /** Whether a process that dies is started again on its port. Default true. */
  readonly restart?: boolean;
}

export interface Death {
  readonly at: number;
  readonly pid: number;
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One service process, and the one after it when it dies: same port, same environment, as an orchestrator would do. */
export class Instance {
  readonly name: string;
  readonly service: ServiceName;
  readonly address: string;
  readonly deaths: Death[] = [];
  readonly #options: InstanceOptions;
  #child: ChildProcess | undefined;
  #state: InstanceState = 'down';
  #wanted = false;
  #restartMs = RESTART_MS.first;
  readonly #watchers = new Set<() => void>();

  constructor(options: InstanceOptions) {
    this.#options = options;
    this.name = options.name;
    this.service = options.service;
    this.address = `http://127.0.0.1:${String(options.port)}`;
  }

  get state(): InstanceState {
    return this.#state;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts it if it is down, and waits until it says that it is ready. Gives up when it dies again and again. */
  async start(): Promise<void> {
    this.#wanted = true;
    const before = this.deaths.length;
    if (this.#child === undefined) this.#spawn();
    const hopeless = (): boolean =>
      this.#child === undefined && (!this.#restarts() || this.deaths.length - before >= HOPELESS_DEATHS);
    await this.#until(() => this.#state === 'ready' || hopeless(), READY_WITHIN_MS);
    if (this.#state !== 'ready') throw new Error(`${this.name} did not become ready\n${this.logTail}`);
  }

  /** Sends the process a signal. It is started again when that ends it. Whether there was a process to send it to. */
  kill(signal: NodeJS.Signals): boolean {
    if (this.#child === undefined) return false;
    this.#become('stopping');
    return this.#child.kill(signal);
  }

  /** Resolves when a process with this id is no longer ours. */
  async gone(pid: number | undefined, withinMs: number): Promise<void> {
    await this.#until(() => this.#child?.pid !== pid, withinMs);
  }

  /** Waits for the state `ready`, e.g. of the process that follows a killed one. */
  async ready(withinMs = READY_WITHIN_MS): Promise<void> {
    await this.#until(() => this.#state === 'ready', withinMs);
  }

  /** SIGTERM, and SIGKILL to what is left after `withinMs`. It is not started again. */
  async stop(withinMs: number): Promise<void> {
    this.#wanted = false;
    const pid = this.pid;
    if (pid === undefined) return;
    this.kill('SIGTERM');
    await this.gone(pid, withinMs).catch(async () => {
      this.kill('SIGKILL');
      await this.gone(pid, 5_000);
    });
  }

  /** The end of what it wrote, for a message. */
  get logTail(): string {
    try {
      return readFileSync(this.#options.logFile, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
    } catch {
      return '(no output)';
    }
  }

  #restarts(): boolean {
    return this.#wanted && (this.#options.restart ?? true);
  }

  #spawn(): void {
    const { service, nodeArgs = [], env, logFile } = this.#options;
    // Found from src (tests) and from dist alike: `node` needs plain JavaScript.
    const program = fileURLToPath(new URL(`../../dist/${service}/main.js`, import.meta.url));
    const startedAt = Date.now();
    const log = openSync(logFile, 'a');
    const child = spawn(process.execPath, [...nodeArgs, program], {
      // A group of its own: Ctrl-C in a terminal reaches the starter alone, which stops its services in order.
      detached: true,
      env: { ...inherited(), ...env, PORT: String(this.#options.port), INSTANCE: this.name, ENDS_WITH_PARENT: '1' },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    this.#become('starting');
    child.once('exit', (code, signal) => {
      this.deaths.push({ at: Date.now(), pid: child.pid ?? 0, code, signal });
      this.#child = undefined;
      this.#become('down');
      if (!this.#restarts()) return;
      const young = Date.now() - startedAt < RESTART_MS.youngBelow;
      this.#restartMs = young ? Math.min(this.#restartMs * 2, RESTART_MS.longest) : RESTART_MS.first;
      setTimeout(() => {
        if (this.#restarts() && this.#child === undefined) this.#spawn();
      }, this.#restartMs);
    });
    void this.#watchReadiness(child);
  }

  async #watchReadiness(child: ChildProcess): Promise<void> {
    const isStarting = (): boolean => this.#child === child && this.#state === 'starting';
    while (isStarting()) {
      const ready = await answersOk(`${this.address}/health/ready`);
      if (!isStarting()) return;
      if (ready) this.#become('ready');
      else await sleep(LOOK_EVERY_MS);
    }
  }

  #become(state: InstanceState): void {
    this.#state = state;
    for (const look of this.#watchers) look();
  }

  async #until(condition: () => boolean, withinMs: number): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#watchers.delete(look);
        reject(new Error(`${this.name} is ${this.#state} after ${String(withinMs)} ms\n${this.logTail}`));
      }, withinMs);
      const look = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
    });
  }
}

async function answersOk(url: string): Promise<boolean> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
}

/** A service is configured by what the shop gives it, not by what happens to be set around the shop. */
function inherited(): Record<string, string> {
  const names = ['PATH', 'HOME', 'TMPDIR', 'TZ', 'LANG', 'NODE_EXTRA_CA_CERTS'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}
