import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ReplaysafeError } from '../../src/errors.js';
import { offsetIs, openShop, run, type Handle, type Shop } from './harness.js';
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
/** Records what was prepared as the effect. */
const applyPrepared: Handle = async (_event, ctx, prepared) => {
  await ctx.tx.query('insert into effect (event_id) values ($1)', [prepared]);
};

test('what was prepared reaches the handler, and no transaction is open meanwhile', async () => {
  broker.send(...ids(20).map((id) => ({ id })));
  let open = 0;
  await using running = await run(shop, broker, {
    prepare: async (event) => {
      const { rowCount } = await shop.pool.query(
        `select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
           and backend_type = 'client backend' and state <> 'idle'`,
      );
      open += rowCount ?? 0;
      return `prepared ${event.id}`;
    },
    prepareConcurrency: 1,
    handle: applyPrepared,
  });
  await offsetIs(running, 20);
  expect(open).toBe(0);
  expect(await shop.effects()).toEqual(ids(20).map((id) => `prepared ${id}`));
  expect(running.diary.order.slice(0, 3)).toEqual(['inbox.received', 'inbox.prepared', 'inbox.handled']);
});

test('only events that are not settled are prepared', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  const prepared: string[] = [];
  const options = {
    prepare: async (event: { id: string }) => {
      prepared.push(event.id);
      return event.id;
    },
    handle: applyPrepared,
  };
  {
    await using running = await run(shop, broker, options);
    await offsetIs(running, 4);
  }
  broker.committed.clear();
  broker.send({ id: 'e-9999' }, { id: 'e-9999' });
  await using running = await run(shop, broker, options);
  await offsetIs(running, 6);
  expect(prepared).toEqual([...ids(4), 'e-9999']);
  expect(await shop.effects()).toEqual([...ids(4), 'e-9999']);
  expect(running.diary.of('inbox.duplicate').flatMap((event) => event.eventIds)).toHaveLength(5);
});

test('different keys are prepared side by side, one key in its order', async () => {
  broker.send(
    ...['a', 'a', 'a', 'b', 'c', 'd'].map((key, n) => ({ id: `${key}${String(n)}`, key })),
    { id: 'none-1' },
    { id: 'none-2' },
  );
  let running = 0;
  let most = 0;
  const started: string[] = [];
  const busy = new Set<string>();
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  await using consumer = await run(shop, broker, {
    prepareConcurrency: 4,
    prepare: async (event) => {
      started.push(event.id);
      most = Math.max(most, ++running);
      if (event.key !== null) {
        expect(busy.has(event.key)).toBe(false);
        busy.add(event.key);
      }
      if (running === 4) release();
      await gate;
      await new Promise((resolve) => setImmediate(resolve));
      running--;
      if (event.key !== null) busy.delete(event.key);
      return event.id;
    },
    handle: applyPrepared,
  });
  await offsetIs(consumer, 8);
  expect(most).toBe(4);
  expect(started.slice(0, 4)).toEqual(['a0', 'b3', 'c4', 'd5']);
  expect(started.filter((id) => id.startsWith('a'))).toEqual(['a0', 'a1', 'a2']);
  expect(await shop.effects()).toEqual(['a0', 'a1', 'a2', 'b3', 'c4', 'd5', 'none-1', 'none-2']);
});

test('a remote system that is down uses up no attempt; what stands before the event is committed, the rest waits', async () => {
  broker.send(...ids(6).map((id) => ({ id })));
  let down = true;
  const calls: string[] = [];
  await using running = await run(shop, broker, {
    maxAttempts: 1,
    prepareConcurrency: 1,
    prepare: async (event) => {
      calls.push(event.id);
      if (down && event.id === 'e-0003') throw new ReplaysafeError('RS_CLIENT_TIMEOUT');
      return event.id;
    },
    handle: applyPrepared,
  });
  await running.diary.until(() => calls.filter((id) => id === 'e-0003').length > 6);
  expect(await shop.effects()).toEqual(ids(3));
  expect(broker.committed.get('orders/0')).toBe(3n);
  expect(calls).not.toContain('e-0004');
  expect(running.diary.of('inbox.failed').every((event) => event.infrastructure)).toBe(true);
  down = false;
  await offsetIs(running, 6);
  expect(await shop.effects()).toEqual(ids(6));
  expect(await shop.letters()).toEqual([]);
});

test('a prepare that fails for good uses up its attempts, is parked, and the others go on', async () => {
  broker.send(...ids(5).map((id) => ({ id })));
  const attempts: number[] = [];
  await using running = await run(shop, broker, {
    maxAttempts: 3,
    prepare: async (event, ctx) => {
      if (event.id !== 'e-0002') return event.id;
      attempts.push(ctx.attempt);
      throw new Error('card refused');
    },
    handle: applyPrepared,
  });
  await offsetIs(running, 5);
  expect(attempts).toEqual([1, 2, 3]);
  expect(await shop.effects()).toEqual(['e-0000', 'e-0001', 'e-0003', 'e-0004']);
  expect(await shop.letters()).toMatchObject([{ headers: { 'rs-error': 'Error: card refused', 'rs-attempt': '3' } }]);
});

test('a prepare that hangs is cut at its limit', async () => {
  broker.send(...ids(2).map((id) => ({ id })));
  const signals: AbortSignal[] = [];
  await using running = await run(shop, broker, {
    maxAttempts: 2,
    prepareTimeoutMs: 30,
    prepare: (event, ctx) => {
      if (event.id === 'e-0001') return Promise.resolve(event.id);
      signals.push(ctx.signal);
      return new Promise(() => undefined);
    },
    handle: applyPrepared,
  });
  await offsetIs(running, 2);
  expect(signals.map((signal) => signal.aborted)).toEqual([true, true]);
  expect(await shop.effects()).toEqual(['e-0001']);
});

test('a handler that fails in company is not prepared anew; alone, each attempt is', async () => {
  broker.send(...ids(3).map((id) => ({ id })));
  const prepared: string[] = [];
  await using running = await run(shop, broker, {
    maxAttempts: 3,
    prepare: async (event, ctx) => {
      prepared.push(`${event.id}#${String(ctx.attempt)}`);
      return event.id;
    },
    handle: async (event, ctx, value) => {
      if (event.id === 'e-0001' && ctx.attempt < 3) throw new Error('not yet');
      await applyPrepared(event, ctx, value);
    },
  });
  await offsetIs(running, 3);
  expect(prepared).toEqual(['e-0000#1', 'e-0001#1', 'e-0002#1', 'e-0001#2', 'e-0001#3']);
  expect(await shop.effects()).toEqual(ids(3));
});

test('P18: the key of a remote call is the same in every attempt, redelivery and restart, and differs by step and consumer', async () => {
  broker.send({ id: 'a' });
  const keys: string[] = [];
  const options = {
    prepare: async (_event: unknown, ctx: { keyFor(step: string): string; attempt: number }) => {
      keys.push(ctx.keyFor('charge'));
      if (keys.length < 3) throw new Error('not yet');
      return 'x';
    },
    handle: (async (_event, ctx) => {
      keys.push(ctx.keyFor('charge'));
      if (keys.length < 6) throw new Error('not yet');
      expect(ctx.keyFor('refund')).not.toBe(ctx.keyFor('charge'));
      expect(() => ctx.keyFor('')).toThrow(expect.objectContaining({ code: 'RS_CLIENT_KEY_INVALID' }) as Error);
    }) satisfies Handle,
  };
  {
    await using running = await run(shop, broker, options);
    await running.diary.until(() => keys.length === 2);
  }
  await using restarted = await run(shop, broker, options);
  await offsetIs(restarted, 1);
  expect(keys.length).toBeGreaterThan(5);
  expect(new Set(keys).size).toBe(1);
  expect(keys[0]).toMatch(/^[\x21-\x7e]{1,255}$/);

  const other = new InProcessBroker();
  other.send({ id: 'a' });
  await using shipping = await run(shop, other, { ...options, consumer: 'shipping' });
  await offsetIs(shipping, 1);
  expect(keys.at(-1)).not.toBe(keys[0]);
});
