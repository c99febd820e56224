import { describe, expect, test } from 'vitest';
import { reconcileOrders, type Books } from '../../src/demo/books.js';
import { demoResult, isSafe, renderLedger } from '../../src/demo/report.js';

const order = (n: number, amount = 100) => ({ id: `o-${n}`, customer_id: `c-${n}`, amount_minor: amount });
const charge = (n: number, amount = 100) => ({ order_id: `o-${n}`, amount_minor: amount });
const wanted = (n: number, accepted = true) => ({
  customerId: `c-${n}`,
  amountMinor: 100,
  ...(accepted ? { orderId: `o-${n}` } : {}),
});
const books = (parts: Partial<Books>): Books => ({
  orders: [order(1)],
  events: { published: 1, open: 0, dead: 0 },
  billing: [charge(1)],
  provider: [charge(1)],
  receipts: undefined,
  absorbed: { consumer: 0, provider: 0 },
  longestGapMs: 0,
  ...parts,
});
const counts = (client: ReturnType<typeof wanted>[], parts: Partial<Books>) => {
  const { lost, double, wrongAmount } = reconcileOrders(client, books(parts));
  return { lost, double, wrongAmount };
};

describe('the ledger of orders', () => {
  test('is right when every accepted order is charged once', () => {
    expect(counts([wanted(1)], {})).toEqual({ lost: 0, double: 0, wrongAmount: 0 });
  });

  test('misses an accepted order that is nowhere', () => {
    expect(counts([wanted(1), wanted(2)], {})).toEqual({ lost: 1, double: 0, wrongAmount: 0 });
  });

  test('wants a written order charged although the client was never answered', () => {
    expect(counts([wanted(1, false)], { billing: [], provider: [] })).toEqual({ lost: 1, double: 0, wrongAmount: 0 });
  });

  test('asks nothing for an order that was neither accepted nor written', () => {
    expect(counts([wanted(1), wanted(2, false)], {})).toEqual({ lost: 0, double: 0, wrongAmount: 0 });
  });

  test('sees two orders of one intention', () => {
    const twice = [order(1), { ...order(2), customer_id: 'c-1' }];
    const charges = [charge(1), charge(2)];
    expect(counts([wanted(1)], { orders: twice, billing: charges, provider: charges })).toEqual({
      lost: 0,
      double: 1,
      wrongAmount: 0,
    });
  });

  test('sees money that moved twice although billing recorded it once', () => {
    expect(counts([wanted(1)], { provider: [charge(1), charge(1)] })).toEqual({ lost: 0, double: 1, wrongAmount: 0 });
  });

  test('sees another amount, and a charge for an order that nobody placed', () => {
    expect(counts([wanted(1)], { billing: [charge(1, 99)], provider: [charge(1), charge(7)] })).toEqual({
      lost: 0,
      double: 0,
      wrongAmount: 2,
    });
  });
});

describe('the result of a run', () => {
  const result = (unsafe: 'no-outbox' | undefined, parts: Partial<Books>) => {
    const client = { intended: [wanted(1)], accepted: 1, retries: 3, replayed: 2, refusals: [] };
    const read = books(parts);
    return demoResult({
      options: { seconds: 45, seed: 1, json: true, unsafe },
      guardsOff: unsafe === undefined ? [] : [unsafe],
      client: client as never,
      chaos: { kills: 5, sigkills: 4 } as never,
      books: read,
      reconciliation: reconcileOrders(client.intended, read),
      drained: true,
      elapsedMs: 50_000,
    });
  };

  test('holds every name that is promised', () => {
    expect(result(undefined, { absorbed: { consumer: 4, provider: 6 } })).toMatchObject({
      accepted: 1,
      published: 1,
      charged: 1,
      providerCharges: 1,
      lost: 0,
      double: 0,
      wrongAmount: 0,
      kills: 5,
      sigkills: 4,
      clientRetries: 3,
      duplicatesAbsorbed: { http: 2, consumer: 4, provider: 6 },
      unsafe: null,
      seconds: 45,
    });
  });

  test('is not safe when one of the three is above 0, and says so', () => {
    const damaged = result('no-outbox', { billing: [], provider: [] });
    expect(isSafe(damaged)).toBe(false);
    expect(renderLedger(damaged, [])).toContain('Damage, as it has to be with no-outbox.');
    expect(renderLedger(result(undefined, {}), [])).toContain('Nothing lost, nothing double, every amount right.');
  });
});
