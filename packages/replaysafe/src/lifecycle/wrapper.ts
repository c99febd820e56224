/** Names of programs that stand between the container's runtime and the service, as `/proc/1/comm` has them. */
const PACKAGE_RUNNERS = /^(npm|npx|pnpm|yarn|bun)\b/;
const SHELLS = new Set(['sh', 'ash', 'bash', 'dash', 'zsh']);

/**
 * What to say where the first process of the container is our parent: a shell does not hand on SIGTERM, and a package
 * runner may end before the service has. Undefined where nothing is wrong, e.g. under an init made for it.
 */
export function wrapperWarning(firstProcess: string): string | undefined {
  if (SHELLS.has(firstProcess)) {
    return `PID 1 is ${firstProcess}, which does not hand on SIGTERM: a stop may end in SIGKILL. Start node itself, or with exec`;
  }
  if (PACKAGE_RUNNERS.test(firstProcess)) {
    return `PID 1 is ${firstProcess}: start node itself, so that nothing stands between a signal and the service`;
  }
  return undefined;
}

/** The parent's pid in a line of `/proc/<pid>/stat`. The name before it may hold anything, brackets too. */
export function parentOf(stat: string): number {
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
}
