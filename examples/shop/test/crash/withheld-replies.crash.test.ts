import { type KafkaBehindProxy, startKafkaBehindProxy } from '@replaysafe/test-services';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CrashShop, type RelayMode } from './crash-shop.js';
import { type Withheld, WITHHELD } from './withheld.js';

// Of its own: the shared broker has one port for a proxy, and others wait for it.
let kafka: KafkaBehindProxy;
beforeAll(async () => {
  kafka = await startKafkaBehindProxy({ alwaysOwn: true });
});
afterAll(async () => {
  await kafka.stop();
});

describe.each<RelayMode>(['single-phase', 'two-phase'])('%s', (relayMode) => {
  let shop: CrashShop;
  beforeAll(async () => {
    shop = await CrashShop.open({ relayMode, kafka });
    // Also connects everyone to Kafka, and makes the group stand.
    await shop.customer.place().accepted;
    await shop.ledgerOf();
  });
  afterAll(async () => {
    await shop.close();
  });

  test.each(WITHHELD.filter(({ modes }) => modes.includes(relayMode)).map((point) => [titleOf(point), point] as const))(
    'nothing is lost and nothing done twice when %s',
    async (_title, { owner, withhold, done, also }) => {
      const order = shop.customer.newOrder();
      const proxy = withhold(shop, kafka.proxy, order);
      shop.customer.place(order);
      await also?.(shop);
      await proxy.whenHeld();
      expect(await done(shop, order)).toBe(1);
      shop.instance(owner).kill('SIGKILL');
      expect((await shop.death(owner)).signal).toBe('SIGKILL');
      proxy.onClientData = proxy.onServerData = undefined;
      proxy.resume();
      await shop.instance(owner).start();
      expect(await shop.ledgerOf()).toEqual({ lost: 0, double: 0, wrongAmount: 0, findings: [] });
    },
  );
});

function titleOf({ owner, what }: Withheld): string {
  return `${owner} dies waiting for the reply to ${what}`;
}
