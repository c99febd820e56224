import { setTimeout as sleep } from 'node:timers/promises';
import type { Faults } from '../provider/faults.js';
import type { Instance } from '../shop/instance.js';
import type { Shop } from '../shop/shop.js';
import type { Plan, PlannedKill } from './plan.js';

const APPLY_AGAIN_MS = 200;
const CALM_TRIES = 5;
const GOOD_BEHAVIOUR = 'behaves';

/** Carries out a plan. It runs in the demo's own process, which nobody kills, so its counts can be believed. */
export class Chaos {
  kills = 0;
  sigkills = 0;
  readonly #shop: Shop;
  readonly #tell: (line: string) => void;
  #faults: Faults | undefined;
  #toldPid: number | undefined;
  #lastNews = GOOD_BEHAVIOUR;

  constructor(shop: Shop, tell: (line: string) => void) {
    this.#shop = shop;
    this.#tell = tell;
  }

  async run(plan: Plan, stop: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    const steps = [
      ...plan.kills.map((kill) => ({
        atMs: kill.atMs,
        act: () => {
          this.#kill(kill);
        },
      })),
      ...plan.faults.map(({ atMs, faults }) => ({
        atMs,
        act: () => {
          this.#setFaults(faults);
        },
      })),
    ].sort((a, b) => a.atMs - b.atMs);
    const telling = this.#keepTelling(stop);
    for (const step of steps) {
      const waitMs = step.atMs - (performance.now() - startedAt);
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: stop }).catch(() => undefined);
      if (stop.aborted) break;
      step.act();
    }
    await telling;
  }

  /** The provider behaves from here on. */
  async calm(): Promise<void> {
    this.#faults = undefined;
    for (let told = false, tries = 0; !told && tries < CALM_TRIES; tries++) {
      await this.#shop.provider.ready();
      told = await this.#put({});
    }
  }

  #kill({ service, pick, signal }: PlannedKill): void {
    const instances: readonly Instance[] = service === 'provider' ? [this.#shop.provider] : this.#shop[service];
    const up = instances.filter((instance) => instance.state === 'ready');
    const victim = up[Math.floor(pick * up.length)];
    // All of them are down already: nothing is gained by waiting for one.
    if (victim?.kill(signal) !== true) return;
    this.kills += 1;
    if (signal === 'SIGKILL') this.sigkills += 1;
    this.#tell(`${signal} to ${victim.name}`);
  }

  #setFaults(faults: Faults): void {
    this.#faults = faults;
    this.#toldPid = undefined;
  }

  /** A provider that was killed has forgotten what it was told. */
  async #keepTelling(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const { provider } = this.#shop;
      const { pid } = provider;
      const faults = this.#faults;
      if (faults && provider.state === 'ready' && pid !== this.#toldPid) {
        if ((await this.#put(faults)) && faults === this.#faults) {
          this.#toldPid = pid;
          this.#tellOf(faults);
        }
      }
      await sleep(APPLY_AGAIN_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  }

  #tellOf(faults: Faults): void {
    const shown = Object.entries(faults)
      .filter(([, value]) => value > 0)
      .map(([name, value]: [string, number]) => `${name} ${String(Math.round(value * 100) / 100)}`);
    const news = shown.length > 0 ? shown.join(', ') : GOOD_BEHAVIOUR;
    if (news !== this.#lastNews) this.#tell(`provider: ${news}`);
    this.#lastNews = news;
  }

  async #put(faults: Partial<Faults>): Promise<boolean> {
    return fetch(`${this.#shop.provider.address}/faults`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(faults),
      signal: AbortSignal.timeout(2_000),
    }).then(
      async (answer) => {
        await answer.arrayBuffer();
        return answer.ok;
      },
      () => false,
    );
  }
}
