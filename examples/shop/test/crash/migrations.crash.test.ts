import { readdirSync } from 'node:fs';
import { writeKillList } from 'replaysafe-crashkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Death } from '../../src/shop/instance.js';
import { CrashShop } from './crash-shop.js';

const migrations = readdirSync(new URL('../../../../packages/replaysafe/sql', import.meta.url)).length;
let shop: CrashShop;
let deaths: readonly Death[];

beforeAll(async () => {
  shop = await CrashShop.open({ relayMode: 'single-phase' }, async ({ orders, list }) => {
    writeKillList(list, [
      ...Array.from({ length: migrations - 1 }, () => 'migrate.applied:1:SIGKILL'),
      'migrate.applied:1:SIGTERM',
    ]);
    for (let begun = 0; begun < migrations; begun++) {
      // It does not get ready: that is the point.
      await orders.start().catch(() => undefined);
      if (orders.pid !== undefined) await orders.gone(orders.pid, 15_000);
    }
    deaths = orders.deaths;
  });
});
afterAll(async () => {
  await shop.close();
});

test('a service struck at migrate.applied, once behind each migration, is whole when it is started again', async () => {
  expect(deaths.slice(0, -1).map(({ signal }) => signal)).toEqual(Array(migrations - 1).fill('SIGKILL'));
  expect(deaths.at(-1)).toMatchObject({ code: 0, signal: null });
  expect(shop.left('orders')).toEqual([]);

  await shop.customer.place().accepted;
  expect(await shop.ledgerOf()).toEqual({ lost: 0, double: 0, wrongAmount: 0, findings: [] });
});
