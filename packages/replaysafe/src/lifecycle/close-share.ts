import { type Clock } from '../ports/clock.js';
import { type Random } from '../ports/random.js';

/** Decides which responses of the lame duck say `Connection: close`. After it, all do. */
export interface CloseShare {
  begin(lameDuckMs: number): void;
  says(): boolean;
  end(): void;
}

/**
 * With `ramp`, the share grows evenly from none to all. Clients that come back to the same process would otherwise open a
 * connection for each request until the balancer has moved them.
 */
export function closeShare(options: {
  readonly clock: Clock;
  readonly random: Random;
  readonly connectionClose: 'all' | 'ramp';
}): CloseShare {
  const { clock, random, connectionClose } = options;
  let beganMs = 0;
  let lastsMs = 0;
  return {
    begin: (lameDuckMs) => {
      beganMs = clock.monotonicMs();
      lastsMs = connectionClose === 'ramp' ? lameDuckMs : 0;
    },
    says: () => {
      const elapsedMs = clock.monotonicMs() - beganMs;
      return elapsedMs >= lastsMs || random.next() < elapsedMs / lastsMs;
    },
    end: () => {
      lastsMs = 0;
    },
  };
}
