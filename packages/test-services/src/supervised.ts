import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type FromSupervisor, type ServiceSpec, type ToSupervisor } from './supervisor-messages.js';

// Found from src (tests) and from dist alike: a program needs plain JavaScript.
const program = fileURLToPath(new URL('../dist/supervisor.js', import.meta.url));

/**
 * A service process below its supervisor. It does not keep the program that started it alive, and it goes when that
 * program goes, whatever ends it.
 */
export class Supervised {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #log: string;
  readonly #gone: Promise<void>;
  #pid: number | undefined;
  #ended: string | undefined;
  #stopped: Promise<void> | undefined;
  readonly #waiters = new Set<() => void>();

  constructor(name: string, spec: ServiceSpec) {
    this.#name = name;
    this.#log = join(spec.folder, 'service.log');
    const log = openSync(this.#log, 'a');
    // What is preloaded into the program that uses the service is not meant for the supervisor.
    const env = { ...process.env };
    delete env['NODE_OPTIONS'];
    this.#child = fork(program, [JSON.stringify(spec)], {
      detached: true,
      execArgv: [],
      env,
      stdio: ['ignore', log, log, 'ipc'],
    });
    closeSync(log);
    this.#gone = new Promise((resolve) => {
      this.#child.once('exit', () => {
        this.#ended ??= `${name}: its supervisor ended`;
        this.#pid = undefined;
        this.#wake();
        resolve();
      });
    });
    this.#child.on('message', (message: FromSupervisor) => {
      if (message.kind === 'started') {
        this.#pid = message.pid;
      } else {
        this.#pid = undefined;
        this.#ended = `${message.during} ended with ${message.error ?? message.signal ?? `code ${String(message.code)}`}`;
      }
      this.#wake();
    });
    this.#child.unref();
    this.#child.channel?.unref();
  }

  #wake(): void {
    for (const waiter of this.#waiters) waiter();
  }

  /** Process id of the service, while it runs. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /** The end of the service's output, for an error message. */
  get logTail(): string {
    try {
      return readFileSync(this.#log, 'utf8').trimEnd().split('\n').slice(-40).join('\n');
    } catch {
      return '(no output)';
    }
  }

  #send(word: ToSupervisor): void {
    if (this.#child.connected) this.#child.send(word, () => undefined);
  }

  /** Waits until `probe` no longer throws. Throws with the service's output when it ends first or time is up. */
  async ready(probe: () => Promise<unknown>, withinMs: number): Promise<void> {
    const until = performance.now() + withinMs;
    let last: unknown = 'it was not started';
    while (performance.now() < until) {
      if (this.#ended !== undefined) {
        throw new Error(`${this.#name} did not start: ${this.#ended}\n${this.logTail}`);
      }
      if (this.#pid !== undefined) {
        try {
          await probe();
          return;
        } catch (error) {
          last = error;
        }
      }
      await sleep(50);
    }
    throw new Error(`${this.#name} did not answer within ${withinMs} ms (${String(last)})\n${this.logTail}`);
  }

  /** Ends the service as a crash does; its folder stays, so that {@link start} finds what was written. */
  async crash(): Promise<void> {
    if (this.#pid === undefined) return;
    const ended = this.#until(() => this.#pid === undefined);
    this.#send('crash');
    await ended;
  }

  /** Starts the service again on its folder after {@link crash}. */
  async start(): Promise<void> {
    if (this.#pid !== undefined) return;
    this.#ended = undefined;
    const started = this.#until(() => this.#pid !== undefined || this.#ended !== undefined);
    this.#send('start');
    await started;
  }

  /** Stops the service and removes its folder. Twice is harmless. */
  stop(): Promise<void> {
    this.#stopped ??= (async () => {
      // While we wait for it, the supervisor must keep this program alive.
      this.#child.ref();
      this.#send('stop');
      await this.#gone;
    })();
    return this.#stopped;
  }

  #until(condition: () => boolean): Promise<void> {
    this.#child.channel?.ref();
    return new Promise((resolve) => {
      const check = (): void => {
        if (!condition() && this.#child.connected) return;
        this.#waiters.delete(check);
        this.#child.channel?.unref();
        resolve();
      };
      this.#waiters.add(check);
      check();
    });
  }
}
