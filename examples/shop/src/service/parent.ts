import { readFileSync } from 'node:fs';

const LOOK_EVERY_MS = 250;

/**
 * Calls back once when the process that started this one is gone.
 *
 * Under npm that is two processes: `npm` starts a shell, the shell starts us. A SIGTERM to npm ends the shell alone, a
 * SIGKILL ends npm alone; in both cases somebody above us has got another parent, and that is what is looked for. The
 * parent of another process is read from /proc, so without one (macOS) only the first case is seen.
 */
export function onParentGone(gone: () => void): { cancel(): void } {
  const before = ancestors();
  const timer = setInterval(() => {
    if (ancestors().join() === before.join()) return;
    clearInterval(timer);
    gone();
  }, LOOK_EVERY_MS);
  timer.unref();
  return {
    cancel: () => {
      clearInterval(timer);
    },
  };
}

/** Our parent and, where npm runs us, what is between us and npm. */
function ancestors(): number[] {
  const parent = process.ppid;
  if (process.env['npm_lifecycle_event'] === undefined) return [parent];
  const grandparent = parentOf(parent);
  return grandparent === undefined ? [parent] : [parent, grandparent];
}

function parentOf(pid: number): number | undefined {
  try {
    // "pid (name) state ppid …"; a name may hold spaces and brackets, so what counts stands behind the last bracket.
    const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return undefined;
  }
}
