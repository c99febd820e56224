import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ReplaysafeError } from '../../src/errors.js';
import { createConsumer } from '../../src/inbox/index.js';
import { apply, offsetIs, openShop, run, type Handle, type Shop } from './harness.js';
import { InProcessBroker, InProcessSubscriber } from './in-process-broker.js';

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
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A handler that stops at one event until it is told to go on. */
function gateAt(id: string) {
  let open = (): void => undefined;
  let reached = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const handle: Handle = async (event, ctx, prepared) => {
    await apply(event, ctx, prepared);
    if (event.id !== id) return;
    reached();
    await gate;
  };
  return {
    handle,
    arrived,
    open: () => {
      open();
    },
  };
}

test('revoking: the running batch ends and its offset is committed before the partition goes', async () => {
  broker.send(...ids(20).map((id) => ({ id })));
  const gate = gateAt('e-0007');
  await using running = await run(shop, broker, { handle: gate.handle, batchSize: 10 });
  await gate.arrived;
  const revoked = running.subscriber.revoke();
  gate.open();
  await revoked;
  expect(broker.committed.get('orders/0')).toBe(10n);
  expect(await shop.effects()).toEqual(ids(10));
  running.subscriber.assign('orders', 0);
  await offsetIs(running, 20);
  expect(await shop.effects()).toEqual(ids(20));
  expect(running.subscriber.rejections).toEqual([]);
});

test('lost: the running batch is rolled back at once, nothing of it is committed', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  const gate = gateAt('e-0007');
  let aborted: unknown;
  const handle: Handle = async (event, ctx, prepared) => {
    ctx.signal.addEventListener('abort', () => {
      aborted = ctx.signal.reason;
    });
    await gate.handle(event, ctx, prepared);
  };
  await using running = await run(shop, broker, { handle });
  await gate.arrived;
  await running.subscriber.lose();
  expect(aborted).toMatchObject({ message: 'lost' });
  expect(await shop.effects()).toEqual([]);
  expect(broker.committed.size).toBe(0);
  gate.open();
  running.subscriber.assign('orders', 0);
  await offsetIs(running, 10);
  expect(await shop.effects()).toEqual(ids(10));
});

test('lost while a poison event is being isolated: no attempt is counted, nobody is parked', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  let hanging: (() => void) | undefined;
  const reached = new Promise<void>((resolve) => {
    hanging = resolve;
  });
  await using running = await run(shop, broker, {
    maxAttempts: 1,
    handle: (event, ctx, prepared) => {
      if (event.id !== 'e-0002') return apply(event, ctx, prepared);
      hanging?.();
      return new Promise(() => undefined);
    },
  });
  await reached;
  await running.subscriber.lose();
  expect(running.diary.of('inbox.parked')).toEqual([]);
  expect(running.diary.of('inbox.failed')).toEqual([]);
});

test('stop mid-batch: the batch ends and commits, nothing new is begun, nothing of it comes again', async () => {
  broker.send(...ids(30).map((id) => ({ id })));
  const gate = gateAt('e-0003');
  const dying = await run(shop, broker, { handle: gate.handle, batchSize: 10 });
  await gate.arrived;
  const stopped = dying.consumer.stop();
  await soon();
  gate.open();
  await stopped;
  expect(broker.committed.get('orders/0')).toBe(10n);
  expect(await shop.effects()).toEqual(ids(10));
  dying.diary.close();

  await using restarted = await run(shop, broker);
  await offsetIs(restarted, 30);
  expect(restarted.diary.of('inbox.duplicate')).toEqual([]);
  expect(await shop.effects()).toEqual(ids(30));
});

test('stop while a batch is isolated: it ends between two records, with what is settled', async () => {
  broker.send(...ids(6).map((id) => ({ id })));
  let isolated = 0;
  const dying = await run(shop, broker, {
    handle: async (event, ctx, prepared) => {
      if (event.id === 'e-0003' && ++isolated > 0) throw new ReplaysafeError('RS_CLIENT_TIMEOUT');
      await apply(event, ctx, prepared);
    },
    retryBackoff: { baseMs: 600_000, capMs: 600_000 },
    random: { next: () => 0.999 },
  });
  await dying.diary.until(() => isolated > 1);
  await offsetIs(dying, 3);
  await dying.consumer.stop();
  dying.diary.close();
  expect(broker.committed.get('orders/0')).toBe(3n);
  expect(await shop.effects()).toEqual(ids(3));
});

test('stop with a handler that hangs: the deadline holds, the batch is rolled back and applied once later', async () => {
  broker.send(...ids(5).map((id) => ({ id })));
  const gate = gateAt('e-0002');
  const dying = await run(shop, broker, { handle: gate.handle });
  await gate.arrived;
  const deadline = new AbortController();
  const stopped = dying.consumer.stop(deadline.signal);
  await soon();
  deadline.abort();
  await stopped;
  dying.diary.close();
  expect(broker.committed.size).toBe(0);
  await using restarted = await run(shop, broker);
  await offsetIs(restarted, 5);
  expect(await shop.effects()).toEqual(ids(5));
});

test('a second stop may be in more of a hurry than the first', async () => {
  broker.send({ id: 'a' });
  const gate = gateAt('a');
  const dying = await run(shop, broker, { handle: gate.handle });
  await gate.arrived;
  const patient = dying.consumer.stop();
  await dying.consumer.stop(AbortSignal.abort());
  await patient;
  dying.diary.close();
  expect(await shop.effects()).toEqual([]);
});

test('the end of the lifecycle stops the consumer by itself', async () => {
  const stopping = new AbortController();
  const signals = { stopping: stopping.signal, deadline: new AbortController().signal, budgetMs: 5_000 };
  broker.send(...ids(20).map((id) => ({ id })));
  const gate = gateAt('e-0003');
  await using running = await run(shop, broker, { handle: gate.handle, batchSize: 10, signals });
  await gate.arrived;
  stopping.abort();
  gate.open();
  await running.consumer.stop();
  expect(broker.committed.get('orders/0')).toBe(10n);
  expect(running.consumer.health().state).toBe('stopped');
  await expect(running.consumer.start()).rejects.toMatchObject({ code: 'RS_INBOX_INTERRUPTED' });
});

test('start and stop in any order and number are harmless, a hundred times', async () => {
  broker.send(...ids(5).map((id) => ({ id })));
  for (let round = 0; round < 100; round++) {
    if (round % 10 === 0) broker.committed.clear();
    const running = await run(shop, broker);
    await Promise.all([running.consumer.start(), running.consumer.stop(), running.consumer.stop()]);
    await running.consumer.stop();
    await running.consumer.start();
    if (round % 10 === 0) await offsetIs(running, 5);
    await running[Symbol.asyncDispose]();
  }
  expect((await shop.effects()).sort()).toEqual(ids(5));
});

test('without the tables the consumer refuses to start', async () => {
  await expect(run(shop, broker, { schema: 'elsewhere' })).rejects.toMatchObject({ code: 'RS_MIGRATE_PENDING' });
});

test('a start that was refused can be tried again', async () => {
  await shop.pool.query('alter table replaysafe.processed_event rename to elsewhere');
  const subscriber = new InProcessSubscriber(broker);
  const consumer = createConsumer({
    sql: shop.sql,
    subscriber,
    consumer: 'billing',
    topics: ['orders'],
    handle: (event, ctx) => apply(event, ctx, ''),
    deadLetters: 'stall',
  });
  try {
    await expect(consumer.start()).rejects.toMatchObject({ code: 'RS_MIGRATE_PENDING' });
  } finally {
    await shop.pool.query('alter table replaysafe.elsewhere rename to processed_event');
  }
  await consumer.start();
  expect(consumer.health().state).toBe('joined');
  await consumer.stop();
});
