import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { apply, offsetIs, openShop, run, type Handle, type Shop } from './harness.js';
import { InProcessBroker } from './in-process-broker.js';

let shop: Shop;
let broker: InProcessBroker;

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());
beforeEach(async () => {
  broker = new InProcessBroker();
  await shop.empty();
});

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);
const without = (all: string[], ...bad: string[]): string[] => all.filter((id) => !bad.includes(id));

/** Applies each event, and does to the named ones what the test wants. */
const except = (bad: Record<string, Handle>): Handle => {
  return async (event, ctx, prepared) => {
    await apply(event, ctx, prepared);
    await bad[event.id]?.(event, ctx, prepared);
  };
};
const fail: Handle = async () => {
  throw new TypeError('cannot read properties of undefined');
};

async function parkedIds(): Promise<string[]> {
  return (await shop.processed()).filter((row) => row.status === 'parked').map((row) => row.event_id);
}

test('poison is isolated: the good ones of its batch commit, in order, and it alone is given up', async () => {
  broker.send(...ids(40).map((id) => ({ id })));
  let tries = 0;
  const poison: Handle = async () => {
    tries++;
    throw new TypeError('cannot');
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0017': poison }), maxAttempts: 3 });
  await offsetIs(running, 40);
  expect(await shop.effects()).toEqual(without(ids(40), 'e-0017'));
  expect(await shop.processed()).toContainEqual({
    event_id: 'e-0017',
    status: 'parked',
    attempt: 3,
    error_code: 'RS_INBOX_ATTEMPTS_EXHAUSTED',
    error: 'TypeError: cannot',
  });
  // Once in company, then alone, as often as it may.
  expect(tries).toBe(1 + 3);
  const letters = await shop.letters();
  expect(letters).toHaveLength(1);
  expect(letters[0]?.headers).toMatchObject({ 'rs-origin-event-id': 'e-0017', 'rs-attempt': '3' });
  // Before the culprit, after the culprit: the batch is whole again behind it.
  expect(running.diary.of('inbox.committed').map((event) => event.eventIds.length)).toEqual([17, 22]);
});

test('several culprits in one batch, the first and the last among them', async () => {
  const bad = ['e-0000', 'e-0007', 'e-0008', 'e-0019'];
  broker.send(...ids(20).map((id) => ({ id })));
  await using running = await run(shop, broker, {
    handle: except(Object.fromEntries(bad.map((id) => [id, fail]))),
    maxAttempts: 1,
  });
  await offsetIs(running, 20);
  expect(await shop.effects()).toEqual(without(ids(20), ...bad));
  expect(await parkedIds()).toEqual(bad);
});

test('a handler that fails for a while is not given up, and later events wait for it', async () => {
  broker.send(...ids(5).map((id) => ({ id })));
  const attempts: number[] = [];
  const flaky: Handle = async (_event, ctx) => {
    attempts.push(ctx.attempt);
    if (ctx.attempt < 3) throw new Error('not yet');
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0002': flaky }) });
  await offsetIs(running, 5);
  expect(await shop.effects()).toEqual(ids(5));
  expect(attempts).toEqual([1, 1, 2, 3]);
});

test('P1: a database error that a handler swallows fails that handler by name, never a neighbour', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  await shop.pool.query("insert into guarded values ('taken')");
  const swallow: Handle = async (_event, ctx) => {
    await ctx.tx.query("insert into guarded values ('taken')").catch(() => undefined);
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0004': swallow }), maxAttempts: 1 });
  await offsetIs(running, 10);
  expect(await shop.effects()).toEqual(without(ids(10), 'e-0004'));
  expect(await parkedIds()).toEqual(['e-0004']);
  expect((await shop.letters())[0]?.headers['rs-error']).toMatch(/swallowed/);
});

test('P1: a database error inside a savepoint is survived', async () => {
  broker.send(...ids(3).map((id) => ({ id })));
  await shop.pool.query("insert into guarded values ('taken')");
  const expected: Handle = async (_event, ctx) => {
    await ctx.savepoint(() => ctx.tx.query("insert into guarded values ('taken')")).catch(() => undefined);
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0001': expected }) });
  await offsetIs(running, 3);
  expect(await shop.effects()).toEqual(ids(3));
  expect(running.diary.of('inbox.failed')).toEqual([]);
});

test('P1: a handler that sends ROLLBACK is given up, its neighbours have one effect each', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  const rollBack: Handle = async (_event, ctx) => {
    await ctx.tx.query('rollback');
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0004': rollBack }), maxAttempts: 2 });
  await offsetIs(running, 10);
  expect(await shop.effects()).toEqual(without(ids(10), 'e-0004'));
  expect(await parkedIds()).toEqual(['e-0004']);
});

test.each(['rollback', 'commit'])(
  'P1: what a handler writes after its own %s is refused, in every attempt',
  async (end) => {
    broker.send(...ids(4).map((id) => ({ id })));
    const goOn: Handle = async (_event, ctx) => {
      await ctx.tx.query(end);
      await ctx.tx.query("insert into effect (event_id) values ('outside')");
    };
    await using running = await run(shop, broker, { handle: except({ 'e-0002': goOn }), maxAttempts: 3 });
    await offsetIs(running, 4);
    expect(await shop.effects()).not.toContain('outside');
  },
);

test('P1: a handler that sends COMMIT does not take its neighbours’ dedup rows with it', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  const commit: Handle = async (_event, ctx) => {
    await ctx.tx.query('commit');
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0004': commit }) });
  await offsetIs(running, 10);
  expect(await shop.effects()).toEqual(ids(10));
  expect(running.diary.of('inbox.failed').map((event) => event.error)).toContainEqual(
    expect.objectContaining({ code: 'RS_TX_LOST' }),
  );
});

test('P1: a handler that deletes dedup rows is found out before COMMIT', async () => {
  broker.send(...ids(6).map((id) => ({ id })));
  const forget: Handle = async (_event, ctx) => {
    await ctx.tx.query('delete from replaysafe.processed_event');
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0004': forget }), maxAttempts: 1 });
  await offsetIs(running, 6);
  expect(await shop.effects()).toEqual(without(ids(6), 'e-0004'));
  expect(await parkedIds()).toEqual(['e-0004']);
});

test('a statement that nobody waited for fails its own handler, though the transaction ends far from it', async () => {
  broker.send(...ids(9).map((id) => ({ id })));
  const dangling: Handle = async (_event, ctx) => {
    void ctx.tx.query('select 1 from pg_sleep(0.05)').catch(() => undefined);
    void ctx.tx.query('select 1 / 0').catch(() => undefined);
  };
  const handle: Handle = async (event, ctx, prepared) => {
    if (event.id === 'e-0006') await dangling(event, ctx, prepared);
    else await apply(event, ctx, prepared);
  };
  await using running = await run(shop, broker, { handle, maxAttempts: 2 });
  await offsetIs(running, 9);
  expect(await shop.effects()).toEqual(without(ids(9), 'e-0006'));
  expect(await parkedIds()).toEqual(['e-0006']);
});

test('a deferred constraint that fails at COMMIT names nobody: the culprit is found by halving', async () => {
  await shop.pool.query(`
    create table promise (event_id text references guarded deferrable initially deferred)`);
  broker.send(...ids(16).map((id) => ({ id })));
  const broken: Handle = async (event, ctx) => {
    await ctx.tx.query('insert into promise values ($1)', [event.id]);
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0011': broken }), maxAttempts: 1 });
  await offsetIs(running, 16);
  expect(await shop.effects()).toEqual(without(ids(16), 'e-0011'));
  expect(await parkedIds()).toEqual(['e-0011']);
});

test('a handler that blocks itself through a second connection does not hold the partition for ever', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  await shop.pool.query("insert into guarded values ('row')");
  const second = await shop.pool.connect();
  const block: Handle = async (_event, ctx) => {
    await ctx.tx.query("set local lock_timeout = '20ms'");
    await ctx.tx.query("update guarded set event_id = event_id where event_id = 'row'");
  };
  try {
    await second.query('begin');
    await second.query("select from guarded where event_id = 'row' for update");
    await using running = await run(shop, broker, {
      handle: except({ 'e-0001': block }),
      maxAttempts: 2,
      maxContentions: 2,
    });
    await offsetIs(running, 4);
    expect(await shop.effects()).toEqual(without(ids(4), 'e-0001'));
    expect(await parkedIds()).toEqual(['e-0001']);
  } finally {
    await second.query('rollback');
    second.release();
  }
});

test('a handler that hangs is cut at its limit, its late answer does nothing', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  const late: (() => Promise<unknown>)[] = [];
  const hang: Handle = (_event, ctx) => {
    late.push(() => ctx.tx.query("insert into effect (event_id) values ('late')"));
    return new Promise(() => undefined);
  };
  await using running = await run(shop, broker, {
    handle: except({ 'e-0001': hang }),
    maxAttempts: 2,
    handlerTimeoutMs: 200,
  });
  await offsetIs(running, 4);
  for (const write of late) await expect(write()).rejects.toMatchObject({ code: 'RS_TX_REVOKED' });
  expect(await shop.effects()).toEqual(without(ids(4), 'e-0001'));
  expect(await parkedIds()).toEqual(['e-0001']);
  expect(running.diary.of('inbox.failed').at(-1)?.error).toMatchObject({ code: 'RS_INBOX_HANDLER_TIMEOUT' });
});

test('a handler that keeps the event loop busy past its limit uses up attempts, like one that hangs', async () => {
  broker.send(...ids(3).map((id) => ({ id })));
  const spin: Handle = async () => {
    const until = performance.now() + 60;
    while (performance.now() < until);
  };
  await using running = await run(shop, broker, {
    handle: except({ 'e-0001': spin }),
    maxAttempts: 2,
    handlerTimeoutMs: 50,
  });
  await offsetIs(running, 3);
  expect(await shop.effects()).toEqual(without(ids(3), 'e-0001'));
  expect(running.diary.of('inbox.failed').at(-1)?.error).toMatchObject({ code: 'RS_INBOX_HANDLER_TIMEOUT' });
});

test('an error that says retryable uses up no attempt, and what stands before it does not wait', async () => {
  broker.send(...ids(6).map((id) => ({ id })));
  let down = true;
  let tries = 0;
  const remote: Handle = async () => {
    tries++;
    if (down) throw new Error('charge', { cause: Object.assign(new Error('down'), { retryable: true }) });
  };
  await using running = await run(shop, broker, { handle: except({ 'e-0003': remote }), maxAttempts: 1 });
  await running.diary.until(() => tries > 8);
  expect(broker.committed.get('orders/0')).toBe(3n);
  expect(await shop.effects()).toEqual(ids(3));
  expect(running.consumer.health().waiting).toMatchObject([{ topic: 'orders', partition: 0, infrastructure: true }]);
  down = false;
  await offsetIs(running, 6);
  expect(await shop.effects()).toEqual(ids(6));
  expect(running.consumer.health().waiting).toEqual([]);
});

test('without an outbox a partition stalls at what cannot be applied, and loses nothing', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  let healed = false;
  const heal: Handle = async () => {
    if (!healed) throw new Error('bug');
  };
  await using running = await run(shop, broker, {
    handle: except({ 'e-0002': heal }),
    deadLetters: 'stall',
    maxAttempts: 2,
  });
  await running.diary.until(() => (running.diary.of('inbox.failed').at(-1)?.attempt ?? 0) > 4);
  expect(broker.committed.get('orders/0')).toBe(2n);
  healed = true;
  await offsetIs(running, 4);
  expect(await shop.effects()).toEqual(ids(4));
});
