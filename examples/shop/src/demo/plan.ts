import type { ServiceName } from '../shop/instance.js';
import { NO_FAULTS, type Faults } from '../provider/faults.js';
import type { SeededRandom } from './seeded-random.js';
import type { Weather } from './weather.js';

export interface PlannedKill {
  readonly atMs: number;
  readonly service: ServiceName;
  /** At least 0, less than 1: which of the instances that are up then. */
  readonly pick: number;
  readonly signal: 'SIGKILL' | 'SIGTERM';
}

export interface PlannedFaults {
  readonly atMs: number;
  readonly faults: Faults;
}

export interface Plan {
  readonly kills: readonly PlannedKill[];
  /** What the provider is told, and when; each holds until the next. */
  readonly faults: readonly PlannedFaults[];
}

/**
 * Everything that will be done to the shop, by the seed alone, before anything is started.
 *
 * @param billingSigkillGapMs Least time between two SIGKILLs of billing: after one the whole group consumes nothing for
 *   the session time-out, and at a shorter distance it would never consume at all.
 */
export function planChaos(random: SeededRandom, weather: Weather, forMs: number, billingSigkillGapMs: number): Plan {
  return {
    kills: planKills(random.fork(1), weather, forMs, billingSigkillGapMs),
    faults: planFaults(random.fork(2), weather, forMs),
  };
}

function planKills(random: SeededRandom, weather: Weather, forMs: number, billingSigkillGapMs: number): PlannedKill[] {
  const kills: PlannedKill[] = [];
  let lastBillingSigkillMs = -Infinity;
  // The first kill waits until there is something to lose.
  for (let atMs = 1_500; ;) {
    atMs += random.between(...weather.killEveryMs);
    if (atMs >= forMs) return kills;
    const service = random.weighted(weather.killWeights);
    const wantsSigkill = random.chance(weather.sigkillShare);
    const tooSoon = service === 'billing' && atMs - lastBillingSigkillMs < billingSigkillGapMs;
    const signal = wantsSigkill && !tooSoon ? 'SIGKILL' : 'SIGTERM';
    if (service === 'billing' && signal === 'SIGKILL') lastBillingSigkillMs = atMs;
    kills.push({ atMs, service, pick: random.next(), signal });
  }
}

function planFaults(random: SeededRandom, weather: Weather, forMs: number): PlannedFaults[] {
  const between: Faults = { ...NO_FAULTS, slowMs: weather.slowMsBetween };
  const faults: PlannedFaults[] = [{ atMs: 0, faults: between }];
  for (let atMs = 0; ;) {
    atMs += random.between(...weather.faultEveryMs);
    if (atMs >= forMs) return faults;
    faults.push({ atMs, faults: { ...between, ...spell(random, weather) } });
    atMs += random.between(...weather.faultForMs);
    faults.push({ atMs: Math.min(atMs, forMs), faults: between });
  }
}

function spell(random: SeededRandom, weather: Weather): Partial<Faults> {
  switch (random.weighted(weather.faultWeights)) {
    case 'slow':
      return { slowMs: random.between(200, 2_500) };
    case 'fail503':
      return { fail503: 0.3 + random.next() * 0.5 };
    case 'drop':
      return { dropAfterWork: 0.2 + random.next() * 0.3 };
  }
}
