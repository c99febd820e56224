import { match, startFaultProxy, type FaultProxy, type ProxiedConnection } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { createRelay, type RelayOptions } from '../../src/outbox/index.js';
import { drain, gate, nextEvent, recordEvents, ScriptedPublisher, TestOutbox } from './support.js';

let db: TestOutbox;
let proxy: FaultProxy;
/** The relay's connections, through the proxy; the test's own go past it. */
let pool: pg.Pool;
let publisher: ScriptedPublisher;
beforeAll(async () => {
  db = await TestOutbox.open();
  const { hostname, port } = new URL(db.database.url);
  proxy = await startFaultProxy({ target: { host: hostname, port: Number(port) } });
});
afterAll(async () => {
  await proxy.stop();
  await db.close();
});
beforeEach(async () => {
  await db.pool.query('truncate replaysafe.outbox_event');
  publisher = new ScriptedPublisher();
  pool = new pg.Pool({ connectionString: proxy.through(db.database.url), max: 4 });
  pool.on('error', () => undefined);
});
afterEach(async () => {
  proxy.onClientData = undefined;
  proxy.onServerData = undefined;
  proxy.resume();
  await pool.end();
});

const create = (options: Partial<RelayOptions> & Pick<RelayOptions, 'mode'>) =>
  createRelay({
    sql: fromPg(pool),
    publisher,
    name: 'relay-a',
    pollIdleMs: 20,
    backoff: { baseMs: 5, capMs: 50 },
    ...options,
  });

/** Acts once, when a statement of this name is sent for the nth time. */
function onStatement(name: string, act: (connection: ProxiedConnection) => 'drop' | undefined, nth = 1): void {
  let left = nth;
  proxy.onClientData = match(`/* replaysafe:${name} */`, (connection) => (--left === 0 ? act(connection) : undefined));
}

/** Lets the next COMMIT after the publish arrive, and loses the connection instead of the answer. */
function loseAnswerToCommit(after: 'outbox.claim' | 'outbox.mark-published'): void {
  onStatement(after, () => {
    proxy.onClientData = match('/* replaysafe:tx.commit */', (connection) => {
      proxy.onClientData = undefined;
      proxy.onServerData = match('COMMIT\0', () => {
        proxy.onServerData = undefined;
        connection.cut();
        return 'drop';
      });
    });
    return undefined;
  });
}

describe.each(['single-phase', 'two-phase'] as const)('%s', (mode) => {
  test('database down at the start and in the middle: backs off and recovers by itself', async () => {
    const ids = await db.writeMany(5);
    proxy.refuse();
    await using relay = create({ mode });
    const errored = nextEvent('outbox.errored');
    relay.start();
    await errored;
    proxy.resume();
    await nextEvent('outbox.marked');
    expect(publisher.storedIds()).toEqual(ids);

    const erroredAgain = nextEvent('outbox.errored');
    proxy.refuse();
    await erroredAgain;
    const [late] = await db.write({});
    const marked = nextEvent('outbox.marked');
    proxy.resume();
    expect((await marked).ids).toEqual([late]);
    expect(await db.statuses()).toEqual(Array.from({ length: 6 }, () => 'PUBLISHED'));
  });

  test('an interrupted COMMIT of the mark is resolved by looking: nothing is published twice, nothing is fenced', async () => {
    const ids = await db.writeMany(2);
    loseAnswerToCommit('outbox.mark-published');
    using events = recordEvents('outbox.marked', 'outbox.fenced', 'outbox.errored');
    await using relay = create({ mode });
    const marked = nextEvent('outbox.marked');
    relay.start();
    await marked;
    const [last] = await db.write({});
    await nextEvent('outbox.marked', (payload) => payload.ids.includes(last!));
    expect(events.names()).toEqual(['outbox.marked', 'outbox.marked']);
    expect(publisher.storedIds()).toEqual([...ids, last]);
    expect(proxy.onServerData).toBeUndefined();
  });
});

test('single-phase: a relay that loses the database after the publish sends again, and says so by an error', async () => {
  const [id] = await db.write({});
  onStatement('outbox.mark-published', (connection) => {
    connection.cut();
    return 'drop';
  });
  const relay = create({ mode: 'single-phase' });
  await expect(relay.runOnce()).rejects.toMatchObject({ code: 'RS_SQL_UNAVAILABLE' });
  expect(await db.rows()).toMatchObject([{ status: 'PENDING', attempts: 0, failures: 0 }]);
  await drain(relay);
  expect(publisher.storedIds()).toEqual([id, id]);
});

test('two-phase: a database that is away for a moment after the publish does not make the events go out again', async () => {
  const [id] = await db.write({});
  const warnings: string[] = [];
  const triedInVain = gate();
  const ignore = () => undefined;
  const logger = {
    debug: ignore,
    info: ignore,
    error: ignore,
    warn: (_: object, message: string) => {
      if (warnings.push(message) === 2) triedInVain.open();
    },
  };
  onStatement('outbox.mark-published', () => {
    proxy.refuse();
    return 'drop';
  });
  const done = create({ mode: 'two-phase', logger }).runOnce();
  await triedInVain.opened;
  proxy.resume();
  expect(await done).toEqual({ claimed: 1, published: 1 });
  expect(publisher.storedIds()).toEqual([id]);
});

test('two-phase: claimed rows never run: a claim whose COMMIT is not answered comes back with its lease', async () => {
  const [id] = await db.write({});
  loseAnswerToCommit('outbox.claim');
  await using relay = create({ mode: 'two-phase', leaseMs: 300 });
  const recovered = nextEvent('outbox.recovered');
  const errored = nextEvent('outbox.errored');
  const marked = nextEvent('outbox.marked');
  relay.start();
  expect((await errored).error).toMatchObject({ code: 'RS_TX_OUTCOME_UNKNOWN' });
  expect(await db.rows()).toMatchObject([{ status: 'PUBLISHING' }]);
  await recovered;
  expect((await marked).ids).toEqual([id]);
  expect(await db.rows()).toMatchObject([{ status: 'PUBLISHED', attempts: 2, failures: 0 }]);
  expect(publisher.storedIds()).toEqual([id]);
});
