import type { Guard } from '../service/guards.js';

/**
 * How hard the demo is on the shop. The means are always the same: signals to processes, the provider's faults, a client
 * that loses its connection; only how often each comes differs.
 */
export interface Weather {
  /** Orders per second that the client begins. */
  readonly rate: number;
  /** Milliseconds from one kill to the next. */
  readonly killEveryMs: readonly [low: number, high: number];
  readonly killWeights: { readonly orders: number; readonly billing: number; readonly provider: number };
  /** Share of kills that are SIGKILL; the others are SIGTERM. */
  readonly sigkillShare: number;
  /** Share of the client's tries whose connection is lost right after the request was sent. */
  readonly lostConnections: number;
  /** Milliseconds from the end of one spell of provider faults to the start of the next. */
  readonly faultEveryMs: readonly [low: number, high: number];
  readonly faultForMs: readonly [low: number, high: number];
  readonly faultWeights: { readonly slow: number; readonly fail503: number; readonly drop: number };
  /** What the provider does between two spells. */
  readonly slowMsBetween: number;
}

const SAFE: Weather = {
  rate: 25,
  killEveryMs: [1_500, 3_500],
  killWeights: { orders: 5, billing: 4, provider: 1 },
  sigkillShare: 0.6,
  lostConnections: 0.02,
  faultEveryMs: [2_000, 5_000],
  faultForMs: [1_000, 2_500],
  faultWeights: { slow: 1, fail503: 1, drop: 1 },
  slowMsBetween: 0,
};

/** Calm, so that what follows is all that can do the damage. */
const CALM: Weather = { ...SAFE, faultEveryMs: [60_000, 60_000], lostConnections: 0 };

/**
 * Slow enough that billing always has some records of a batch behind it and some before it: a process that is killed
 * dies in the middle, as it would under load.
 */
const BILLING_UNDER_LOAD: Weather = {
  ...CALM,
  slowMsBetween: 60,
  killEveryMs: [3_000, 3_500],
  killWeights: { orders: 0, billing: 1, provider: 0 },
  sigkillShare: 1,
};

const BY_GUARD: Readonly<Record<Guard, Weather>> = {
  'key-per-try': { ...CALM, lostConnections: 0.2, killEveryMs: [2_000, 3_000] },
  'no-dedup-row': BILLING_UNDER_LOAD,
  // Billing asks for several orders at once, so it takes more to keep it in the middle of something.
  'offset-first': { ...BILLING_UNDER_LOAD, slowMsBetween: 250 },
  'no-outbox': {
    ...CALM,
    rate: 40,
    killEveryMs: [1_800, 2_400],
    killWeights: { orders: 1, billing: 0, provider: 0 },
    sigkillShare: 1,
  },
  'provider-without-keys': {
    ...CALM,
    faultEveryMs: [500, 1_000],
    faultForMs: [2_000, 3_000],
    faultWeights: { slow: 0, fail503: 0, drop: 1 },
  },
};

export function weatherFor(guard: Guard | undefined): Weather {
  return guard === undefined ? SAFE : BY_GUARD[guard];
}

/**
 * Which protections have to be off for the damage to show. Billing that forgets what it has done asks the provider again
 * with the same key and gets the first answer: the key covers the same fault as the row, so both go.
 */
export function switchedOff(guard: Guard): readonly Guard[] {
  return guard === 'no-dedup-row' ? ['no-dedup-row', 'provider-without-keys'] : [guard];
}
