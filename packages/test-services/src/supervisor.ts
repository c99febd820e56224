/**
 * A program of its own: the parent of one service process.
 *
 * It is forked detached, so that Ctrl-C in a terminal reaches the program that uses the service first and not the
 * service itself, and it watches the channel to that program: when the channel closes, because the program ended or
 * was SIGKILLed, the service is stopped and its folder removed. Being the service's parent, it can never signal a
 * stranger that got a reused process id.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { type Command, type FromSupervisor, type ServiceSpec, type ToSupervisor } from './supervisor-messages.js';

const spec = JSON.parse(process.argv[2] ?? '') as ServiceSpec;
let current: { child: ChildProcess; ended: Promise<unknown> } | undefined;
let stopping = false;

const tell = (message: FromSupervisor): void => {
  if (process.connected) process.send?.(message, () => undefined);
};

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: string;
}

const launch = (command: Command): { child: ChildProcess; ended: Promise<End> } => {
  const child = spawn(command.file, command.args, {
    cwd: command.cwd,
    env: { ...process.env, ...command.env },
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = new Promise<End>((resolve) => {
    child.once('error', (error) => {
      resolve({ code: null, signal: null, error: error.message });
    });
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
  });
  return { child, ended };
};

/** Launches what a stop has to end. */
const launchCurrent = (command: Command): { child: ChildProcess; ended: Promise<End> } => {
  const launched = launch(command);
  current = launched;
  void launched.ended.then(() => {
    if (current === launched) current = undefined;
  });
  return launched;
};

const run = async (): Promise<void> => {
  const { child, ended } = launchCurrent(spec.run);
  if (child.pid !== undefined) tell({ kind: 'started', pid: child.pid });
  tell({ kind: 'ended', during: spec.run.file, ...(await ended) });
};

const begin = async (): Promise<void> => {
  for (const step of spec.prepare) {
    if (stopping) return;
    const result = await launchCurrent(step).ended;
    if (result.code !== 0) {
      tell({ kind: 'ended', during: step.file, ...result });
      return;
    }
  }
  if (!stopping) await run();
};

const end = async (signal: NodeJS.Signals): Promise<void> => {
  const running = current;
  if (running === undefined) return;
  running.child.kill(signal);
  const timer = setTimeout(() => running.child.kill('SIGKILL'), spec.stopWithinMs);
  await running.ended;
  clearTimeout(timer);
};

const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  await end(spec.stopSignal);
  for (const step of spec.cleanup ?? []) await launch(step).ended;
  await rm(spec.folder, { recursive: true, force: true, maxRetries: 5 });
  process.exit(0);
};

process.on('disconnect', () => void stop());
process.on('SIGTERM', () => void stop());
process.on('SIGHUP', () => void stop());
process.on('message', (message: ToSupervisor) => {
  if (message === 'stop') void stop();
  else if (message === 'crash') void (spec.crashCommand ? launch(spec.crashCommand).ended : end(spec.crashSignal));
  else if (current === undefined && !stopping) void run();
});
// The channel may have closed while this program was being loaded, before anyone listened for it.
if (process.connected) void begin();
else void stop();
