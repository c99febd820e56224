import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'replaysafe';

const LONGEST_WAIT_MS = 2_000;

/**
 * Does something again until it works: a service that starts before its database or its broker waits for it, alive but not
 * ready, instead of crashing in a loop. Ends without having done it when the service is to stop.
 *
 * @throws the error that `attempt` returns (as opposed to throws): one that waiting cannot heal
 */
export async function untilDone(
  what: string,
  { stopping, logger }: { readonly stopping: AbortSignal; readonly logger: Logger },
  attempt: () => Promise<Error | undefined>,
): Promise<void> {
  for (let waitMs = 100; !stopping.aborted; waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS)) {
    let final: Error | undefined;
    try {
      final = await attempt();
      if (final === undefined) return;
    } catch (error) {
      logger.warn({ err: error, waitMs }, `could not ${what} yet`);
      await sleep(waitMs, undefined, { signal: stopping }).catch(() => undefined);
    }
    if (final !== undefined) throw final;
  }
}
