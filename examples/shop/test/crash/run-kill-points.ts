import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CrashShop, type RelayMode } from './crash-shop.js';
import { KILL_POINTS, type KillPoint, UNCOMMITTED } from './kill-points.js';

const SECOND_SIGTERM = 128 + 15;

/** One test for each kill point of a mode: a process gets the signal exactly there, and the ledger is right afterwards. */
export function runKillPoints(
  mode: RelayMode,
  signal: 'SIGKILL' | 'SIGTERM',
  points = [...KILL_POINTS, ...UNCOMMITTED],
): void {
  let shop: CrashShop;
  beforeAll(async () => {
    shop = await CrashShop.open({ relayMode: mode });
  });
  afterAll(async () => {
    await shop.close();
  });

  describe(`${signal}, ${mode}: nothing is lost and nothing done twice when`, () => {
    test.each(points.filter(({ modes }) => modes.includes(mode)).map((point) => [titleOf(point), point] as const))(
      '%s',
      async (_title, point) => {
        await strike(shop, mode, signal, point);
      },
    );
  });

  test(`${signal}, ${mode}: the ledger of all these orders is right`, async () => {
    expect(await shop.ledgerOf()).toEqual({ lost: 0, double: 0, wrongAmount: 0, findings: [] });
  });
}

function titleOf({ owner, event, nth }: KillPoint): string {
  return `${owner} is struck at ${event}${nth === undefined ? '' : `, the ${String(nth)}.`}`;
}

async function strike(
  shop: CrashShop,
  mode: RelayMode,
  signal: 'SIGKILL' | 'SIGTERM',
  point: KillPoint,
): Promise<void> {
  const { owner, event, nth = 1 } = point;
  const line = `${event}:${String(nth)}:${signal}`;
  const placings = await point.provoke({
    shop,
    mode,
    arm: () => {
      shop.arm(owner, [line]);
    },
  });
  const death = await shop.death(owner);
  expect(shop.left(owner)).toEqual([]);
  expect(death.said).toContain(`${signal} at ${event}:`);
  if (signal === 'SIGKILL') expect(death.signal).toBe('SIGKILL');
  // A second SIGTERM comes too late where the first has ended the process by then.
  else expect(point.stopping ? [0, SECOND_SIGTERM] : [0]).toContain(death.code);

  shop.died();
  await shop.instance(owner).start();
  await Promise.all(placings.map(({ accepted }) => accepted));
  expect(await shop.ledgerOf(placings.map(({ order }) => order))).toEqual({
    lost: 0,
    double: 0,
    wrongAmount: 0,
    findings: [],
  });
  await point.afterwards?.(shop);
}
