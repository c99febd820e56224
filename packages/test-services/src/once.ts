interface Shared<T> {
  users: number;
  readonly service: Promise<T>;
}

/**
 * Starts a service once for everyone in this process who asks for it under the same name, and stops it when the last
 * of them is done. A test runner loads its setup files once for each project, each time as a new module: only the
 * process itself can be asked what already runs.
 */
export const startOnce = async <T extends { stop(): Promise<void> }>(
  name: string,
  start: () => Promise<T>,
): Promise<{ service: T; release: () => Promise<void> }> => {
  const key = Symbol.for(`replaysafe.test-services.${name}`);
  const process = globalThis as unknown as Record<symbol, Shared<T> | undefined>;
  const shared = (process[key] ??= { users: 0, service: start() });
  shared.users += 1;
  const service = await shared.service;
  let released = false;
  return {
    service,
    release: async () => {
      if (released) return;
      released = true;
      shared.users -= 1;
      if (shared.users > 0) return;
      process[key] = undefined;
      await service.stop();
    },
  };
};
