import { match, startFaultProxy, type FaultProxy } from '@replaysafe/test-services';
import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createFakeClock } from '../../src/testing/index.js';
import { apply, offsetIs, openShop, run, type Handle, type Shop } from './harness.js';
import { InProcessBroker } from './in-process-broker.js';

let shop: Shop;
let broker: InProcessBroker;
let proxy: FaultProxy;
let pool: pg.Pool;

beforeEach(async () => {
  shop = await openShop();
  broker = new InProcessBroker();
  const target = new URL(shop.url);
  proxy = await startFaultProxy({ target: { host: target.hostname, port: Number(target.port) } });
  pool = new pg.Pool({ connectionString: proxy.through(shop.url), max: 4, connectionTimeoutMillis: 2_000 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  await proxy.stop();
  await pool.end();
  await shop.close();
});

const ids = (count: number): string[] => Array.from({ length: count }, (_, n) => `e-${String(n).padStart(4, '0')}`);
const through = () => ({ sql: fromPg(pool) });

test('P2: the answer to COMMIT is lost, the batch runs again and its dedup rows tell', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  let lost = 0;
  proxy.onServerData = match('COMMIT\0', (connection) => {
    if (lost++ > 0) return undefined;
    connection.cut();
    return 'drop';
  });
  await using running = await run(through(), broker);
  await offsetIs(running, 10);
  expect(lost).toBeGreaterThan(0);
  expect(running.diary.of('inbox.failed')[0]?.error).toMatchObject({ code: 'RS_TX_OUTCOME_UNKNOWN' });
  expect(await shop.effects()).toEqual(ids(10));
  expect(running.diary.of('inbox.duplicate')[0]?.eventIds).toEqual(ids(10));
});

test('P2: COMMIT itself never arrives, the batch runs again and is fresh', async () => {
  broker.send(...ids(10).map((id) => ({ id })));
  let lost = 0;
  proxy.onClientData = match('replaysafe:tx.commit', (connection) => {
    if (lost++ > 0) return undefined;
    connection.cut();
    return 'drop';
  });
  await using running = await run(through(), broker);
  await offsetIs(running, 10);
  expect(await shop.effects()).toEqual(ids(10));
  expect(running.diary.of('inbox.duplicate')).toEqual([]);
  expect(running.diary.of('inbox.committed')).toHaveLength(1);
});

test('P2: COMMIT is answered too late: the run is given up, its outcome found out by the next', async () => {
  broker.send(...ids(3).map((id) => ({ id })));
  let held = 0;
  proxy.onServerData = match('COMMIT\0', () => (held++ > 0 ? undefined : 'hold'));
  const clock = createFakeClock();
  await using running = await run(through(), broker, { clock });
  await proxy.whenHeld();
  await clock.advance(60_000);
  await running.diary.until(() => running.diary.of('inbox.failed').length > 0);
  expect(running.diary.of('inbox.failed')[0]?.error).toMatchObject({ code: 'RS_TX_OUTCOME_UNKNOWN' });
  await clock.advance(1_000);
  await offsetIs(running, 3);
  expect(running.diary.of('inbox.committed')).toEqual([]);
  expect(await shop.effects()).toEqual(ids(3));
});

test('the database goes away mid-run: no event is given up, the consumer recovers by itself', async () => {
  broker.send(...ids(4).map((id) => ({ id })));
  await using running = await run(through(), broker, { maxAttempts: 1 });
  await offsetIs(running, 4);
  proxy.refuse();
  broker.send({ id: 'later-1' }, { id: 'later-2' });
  await running.diary.until(() => running.diary.of('inbox.failed').length > 5);
  expect(running.consumer.health().waiting).toMatchObject([{ infrastructure: true }]);
  proxy.resume();
  await offsetIs(running, 6);
  expect(await shop.effects()).toEqual([...ids(4), 'later-1', 'later-2']);
  expect(await shop.letters()).toEqual([]);
});

test('the connection is cut inside a handler that hides the error: no attempt is counted', async () => {
  broker.send({ id: 'a' });
  let cuts = 0;
  const handle: Handle = async (event, ctx, prepared) => {
    if (cuts++ < 3) proxy.cut();
    await apply(event, ctx, prepared).catch(() => {
      throw new Error('order could not be saved');
    });
  };
  await using running = await run(through(), broker, { maxAttempts: 1, handle });
  await offsetIs(running, 1);
  expect(await shop.effects()).toEqual(['a']);
  expect(running.diary.of('inbox.failed').map((event) => event.infrastructure)).toEqual([true, true, true]);
});

test('the database is down at the start, and the consumer waits for it', async () => {
  proxy.refuse();
  broker.send({ id: 'a' });
  await using running = await run(through(), broker);
  await running.diary.until(() => running.diary.of('inbox.failed').length > 2);
  proxy.resume();
  await offsetIs(running, 1);
  expect(await shop.effects()).toEqual(['a']);
});

test('the server ends our session (restart): the same batch again', async () => {
  broker.send({ id: 'a' }, { id: 'b' });
  let ended = 0;
  const handle: Handle = async (event, ctx, prepared) => {
    if (ended++ === 0) {
      const { rows } = await ctx.tx.query<{ pid: number }>('select pg_backend_pid() as pid');
      await shop.pool.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
    }
    await apply(event, ctx, prepared);
  };
  await using running = await run(through(), broker, { maxAttempts: 1, handle });
  await offsetIs(running, 2);
  expect(await shop.effects()).toEqual(['a', 'b']);
  expect(running.diary.of('inbox.failed')).toMatchObject([{ infrastructure: true }]);
});

test('a handler’s own error while the database is down is not held against the event', async () => {
  broker.send({ id: 'a' });
  let down = true;
  const handle: Handle = async (event, ctx, prepared) => {
    if (down) {
      down = false;
      proxy.refuse();
      throw new TypeError('cannot read properties of undefined');
    }
    await apply(event, ctx, prepared);
  };
  await using running = await run(through(), broker, { maxAttempts: 1, handle });
  await running.diary.until(() => running.diary.of('inbox.failed').length > 0);
  proxy.resume();
  await offsetIs(running, 1);
  expect(await shop.effects()).toEqual(['a']);
});

test('a prepare that reads from the database while it is down is not held against the event', async () => {
  broker.send({ id: 'a' });
  let calls = 0;
  const prepare = async (): Promise<string> => {
    if (calls++ === 0) proxy.refuse();
    // The driver's error has no SQLSTATE.
    await pool.query('select 1');
    return '';
  };
  await using running = await run(through(), broker, { maxAttempts: 1, prepare });
  await running.diary.until(() => running.diary.of('inbox.failed').length > 3);
  proxy.resume();
  await offsetIs(running, 1);
  expect(await shop.effects()).toEqual(['a']);
  expect(running.diary.of('inbox.failed').every((event) => event.infrastructure)).toBe(true);
});

test('the database hangs: the stop keeps its deadline', async () => {
  broker.send({ id: 'a' });
  const dying = await run(through(), broker, {
    handle: async (event, ctx, prepared) => {
      proxy.drop();
      await apply(event, ctx, prepared);
    },
  });
  await dying.diary.until(() => proxy.lostBytes > 0 || dying.diary.of('inbox.received').length > 0);
  const deadline = AbortSignal.timeout(300);
  await dying.consumer.stop(deadline);
  dying.diary.close();
  expect(deadline.aborted).toBe(true);
  expect(broker.committed.size).toBe(0);
});
