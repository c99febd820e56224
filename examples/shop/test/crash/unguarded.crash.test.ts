import { match } from '@replaysafe/test-services';
import { afterEach, expect, test } from 'vitest';
import { CrashShop } from './crash-shop.js';

/** The same kills with one guard off: what the other tests find right would be found wrong, if it were. */
let shop: CrashShop | undefined;
afterEach(async () => {
  await shop?.close();
  shop = undefined;
});

test('without an outbox, an order is lost when orders is killed behind its commit', async () => {
  shop = await CrashShop.open({ relayMode: 'single-phase', unsafe: 'no-outbox' });
  shop.arm('orders', ['idempotency.executed']);
  const { accepted } = shop.customer.place();
  await shop.death('orders');
  await shop.instance('orders').start();
  await accepted;
  expect(await shop.damage()).toEqual({ lost: 1, double: 0, wrongAmount: 0 });
});

test('without a dedup row, a charge is recorded twice when billing is killed before it knows of the first', async () => {
  shop = await CrashShop.open({ relayMode: 'single-phase', unsafe: 'no-dedup-row' });
  const database = shop.databases.billing;
  database.onClientData = match('shop:billing.record', (connection) => {
    connection.withholdReplies();
  });
  shop.customer.place();
  await database.whenHeld();
  shop.instance('billing').kill('SIGKILL');
  await shop.death('billing');
  database.onClientData = undefined;
  database.resume();
  await shop.instance('billing').start();
  expect(await shop.damage()).toEqual({ lost: 0, double: 1, wrongAmount: 0 });
});

test('without keys at the provider, money moves twice when billing is killed behind its answer', async () => {
  shop = await CrashShop.open({ relayMode: 'single-phase', unsafe: 'provider-without-keys' });
  shop.arm('billing', ['client.answered']);
  shop.customer.place();
  await shop.death('billing');
  await shop.instance('billing').start();
  expect(await shop.damage()).toEqual({ lost: 0, double: 1, wrongAmount: 0 });
});
