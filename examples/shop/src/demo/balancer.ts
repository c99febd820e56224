import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 200;

/**
 * Takes turns over the instances that say that they are ready, as a load balancer does: it notices a little late, so a killed
 * instance still gets requests for a moment, and one that is stopping too.
 */
export class Balancer {
  readonly #addresses: readonly string[];
  readonly #ready = new Set<string>();
  #turn = 0;

  constructor(addresses: readonly string[]) {
    this.#addresses = addresses;
  }

  /** The address whose turn it is, or undefined while none is ready. */
  next(): string | undefined {
    const ready = this.#addresses.filter((address) => this.#ready.has(address));
    return ready[this.#turn++ % Math.max(1, ready.length)];
  }

  /** Asks for readiness until the signal aborts. */
  async watch(stop: AbortSignal): Promise<void> {
    await Promise.all(this.#addresses.map((address) => this.#watchOne(address, stop)));
  }

  async #watchOne(address: string, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      if (await isReady(address)) this.#ready.add(address);
      else this.#ready.delete(address);
      await sleep(LOOK_EVERY_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  }
}

async function isReady(address: string): Promise<boolean> {
  try {
    const answer = await fetch(`${address}/health/ready`, { signal: AbortSignal.timeout(1_000) });
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    return false;
  }
}
