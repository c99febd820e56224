import type { Judge } from '../finding.js';
import { shellScript, simpleCommands } from '../shell.js';
import type { Workload } from '../workload.js';

const RUNNER = /^(?:\S*\/)?(?:npm|npx|yarn|pnpm|nodemon|tsx)$/;

/** R-SHUT-1: whether what runs as PID 1 hands SIGTERM on. */
export function judgeEntrypoint(workload: Workload, judge: Judge): void {
  if (workload.isJob) return;
  for (const { command, commandPlace, name } of workload.containers) {
    const script = shellScript(command);
    if (script !== undefined && staysInFront(script)) {
      const message =
        'a shell is PID 1 and keeps SIGTERM to itself: the service may never hear it; write `exec` before the last command';
      judge.hint('R-SHUT-1', commandPlace, message, name);
    } else if (RUNNER.test(command[0] ?? '')) {
      const message = `${command[0] ?? ''} is PID 1, and what it starts may not hear SIGTERM; run node itself`;
      judge.hint('R-SHUT-1', commandPlace, message, name);
    }
  }
}

/** Shells replace themselves by a single command, but not by the last of several. */
function staysInFront(script: string): boolean {
  const commands = simpleCommands(script);
  if (/\btrap\b/.test(script) && /\bwait\b/.test(script)) return false;
  return commands.length > 1 && !/^exec\s/.test(commands.at(-1) ?? '');
}
