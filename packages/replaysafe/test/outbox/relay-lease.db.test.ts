import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createRelay, type RelayOptions } from '../../src/outbox/index.js';
import { outboxSql } from '../../src/outbox/sql.js';
import type { Clock } from '../../src/ports/clock.js';
import type { PublishOutcome } from '../../src/ports/broker.js';
import { drain, gate, nextEvent, recordEvents, ScriptedPublisher, TestOutbox } from './support.js';

let db: TestOutbox;
let publisher: ScriptedPublisher;
beforeAll(async () => {
  db = await TestOutbox.open();
});
afterAll(() => db.close());
beforeEach(async () => {
  await db.pool.query('truncate replaysafe.outbox_event');
  publisher = new ScriptedPublisher();
});

const create = (options: Partial<RelayOptions> = {}) =>
  createRelay({ sql: db.sql, publisher, mode: 'two-phase', name: 'relay-a', ...options });
const expireLeases = () =>
  db.pool.query(`update replaysafe.outbox_event set locked_until = clock_timestamp() - interval '1 second'
    where status = 'PUBLISHING'`);

/** A process whose timers do not run: nothing is renewed. */
const frozenClock: Clock = {
  now: () => 0,
  monotonicMs: () => 0,
  setTimer: () => ({ cancel: () => undefined }),
};

test('a claim carries its token and its lease, and the token travels with the record (P11)', async () => {
  await db.write({});
  const hold = gate();
  publisher.before = () => hold.opened;
  const claimed = nextEvent('outbox.claimed');
  const done = create({ leaseMs: 60_000 }).runOnce();
  await claimed;
  const [row] = await db.rows();
  expect(row).toMatchObject({ status: 'PUBLISHING', attempts: 1 });
  const { rows } = await db.pool.query<{ ms: number }>(
    'select extract(epoch from locked_until - clock_timestamp())::float8 * 1000 as ms from replaysafe.outbox_event',
  );
  expect(rows[0]!.ms).toBeGreaterThan(50_000);
  expect(rows[0]!.ms).toBeLessThanOrEqual(60_000);
  hold.open();
  await done;
  expect(publisher.stored[0]!.headers['rs-claim-token']).toBe(row!.claim_token);
});

test('no connection is held while the broker is asked', async () => {
  await db.write({});
  let busy: number | undefined;
  publisher.before = async () => {
    busy = db.pool.totalCount - db.pool.idleCount;
  };
  await create().runOnce();
  expect(busy).toBe(0);
});

test('claims of a dead relay are pending again when their lease has run out, and not before', async () => {
  const ids = await db.writeMany(3);
  publisher.before = () => new Promise(() => undefined);
  const claimed = nextEvent('outbox.claimed');
  void create({ clock: frozenClock }).runOnce();
  await claimed;
  const healthy = new ScriptedPublisher();
  const other = create({ publisher: healthy, name: 'relay-b' });
  expect(await other.runOnce()).toEqual({ claimed: 0, published: 0 });
  await expireLeases();
  using events = recordEvents('outbox.recovered');
  // A relay of the other mode cleans up as well: the mode is one option.
  await drain(create({ publisher: healthy, name: 'relay-b', mode: 'single-phase' }));
  expect(events.of('outbox.recovered')).toHaveLength(1);
  expect([...(events.of('outbox.recovered')[0]!['ids'] as string[])].sort()).toEqual([...ids].sort());
  expect(healthy.storedIds()).toEqual(ids);
  // A death is an attempt, not a failure.
  expect((await db.rows()).every(({ attempts, failures }) => attempts === 2 && failures === 0)).toBe(true);
});

describe('discarded job revived: a relay that slept past its lease cannot write over its successor (P10)', () => {
  test.each([
    ['mark', { status: 'stored' }],
    ['fail', { status: 'retriable', reason: 'x' }],
    ['give up', { status: 'rejected', reason: 'x' }],
  ] satisfies [string, PublishOutcome][])('%s', async (_, late) => {
    await db.writeMany(2);
    const hold = gate();
    publisher.before = () => hold.opened;
    publisher.answer = () => late;
    const claimed = nextEvent('outbox.claimed');
    const sleeper = create({ clock: frozenClock }).runOnce();
    await claimed;
    await expireLeases();

    // The successor has claimed and not marked yet: the row looks just like the sleeper's own, but for the token.
    const successor = new ScriptedPublisher();
    const successorHold = gate();
    successor.before = () => successorHold.opened;
    const claimedAgain = nextEvent('outbox.claimed', ({ relay }) => relay === 'relay-b');
    const successorDone = create({ publisher: successor, name: 'relay-b' }).runOnce();
    await claimedAgain;

    using events = recordEvents('outbox.marked', 'outbox.failed', 'outbox.dead', 'outbox.fenced');
    hold.open();
    expect((await sleeper).published).toBe(0);
    expect(events.seen).toEqual([{ name: 'outbox.fenced', payload: { relay: 'relay-a', count: 2 } }]);
    expect(await db.statuses()).toEqual(['PUBLISHING', 'PUBLISHING']);
    successorHold.open();
    expect((await successorDone).published).toBe(2);
    expect(await db.statuses()).toEqual(['PUBLISHED', 'PUBLISHED']);
  });

  test('release', async () => {
    await db.write({});
    const hold = gate();
    publisher.before = () => hold.opened;
    publisher.answer = () => ({ status: 'unknown', reason: 'cut' });
    const claimed = nextEvent('outbox.claimed');
    const abandoned = new AbortController();
    const signals = { stopping: new AbortController().signal, deadline: abandoned.signal, budgetMs: 1_000 };
    const sleeper = create({ clock: frozenClock, signals }).runOnce();
    await claimed;
    await expireLeases();
    await drain(create({ publisher: new ScriptedPublisher(), name: 'relay-b' }));
    using events = recordEvents('outbox.released', 'outbox.fenced');
    abandoned.abort();
    hold.open();
    await sleeper;
    expect(events.names()).toEqual(['outbox.fenced']);
    expect(await db.rows()).toMatchObject([{ status: 'PUBLISHED', attempts: 2 }]);
  });
});

test('finished job runs again: a clean-up does not touch a row that is being marked, nor one that was renewed', async () => {
  await db.writeMany(2);
  await db.pool.query(`update replaysafe.outbox_event set status = 'PUBLISHING', attempts = 1,
    claim_token = gen_random_uuid(), locked_until = clock_timestamp() - interval '1 second'`);
  const [marking, renewing] = (await db.rows()).map(({ id }) => id);
  const client = await db.pool.connect();
  try {
    await client.query('begin');
    await client.query(
      `update replaysafe.outbox_event set status = 'PUBLISHED', locked_until = null, published_at = now() where id = $1`,
      [marking],
    );
    await client.query(
      `update replaysafe.outbox_event set locked_until = clock_timestamp() + interval '1 minute' where id = $1`,
      [renewing],
    );
    const { rows } = await db.pool.query(outboxSql('"replaysafe"').recover, [10]);
    expect(rows).toEqual([]);
    await client.query('commit');
  } finally {
    client.release();
  }
  expect(await create().runOnce()).toEqual({ claimed: 0, published: 0 });
  expect(await db.statuses()).toEqual(['PUBLISHED', 'PUBLISHING']);
});

test('the lease of a long publish is renewed, so that no other relay takes the rows', async () => {
  await db.write({});
  const hold = gate();
  publisher.before = () => hold.opened;
  const claimed = nextEvent('outbox.claimed');
  const done = create({ leaseMs: 300, publishTimeoutMs: 30_000 }).runOnce();
  await claimed;
  const first = (await db.rows())[0]!.locked_until!;
  using events = recordEvents('outbox.recovered', 'outbox.fenced');
  const other = create({ publisher: new ScriptedPublisher(), name: 'relay-b', leaseMs: 300 });
  // Past the end of the first lease, with another relay that looks for expired ones all the time.
  for (;;) {
    expect(await other.runOnce()).toEqual({ claimed: 0, published: 0 });
    const { rows } = await db.pool.query<{ past: boolean }>(`select clock_timestamp() > $1::timestamptz as past`, [
      new Date(first.getTime() + 600),
    ]);
    if (rows[0]!.past) break;
  }
  hold.open();
  expect(await done).toEqual({ claimed: 1, published: 1 });
  expect(events.seen).toEqual([]);
  expect(await db.rows()).toMatchObject([{ status: 'PUBLISHED', attempts: 1 }]);
});

describe('a process of its own', () => {
  let child: ChildProcessWithoutNullStreams | undefined;
  let lines: Interface;
  const seen: Record<string, unknown>[] = [];

  const launch = ({ mode = 'two-phase', leaseMs = 30_000, publishTimeoutMs = 60_000 }): void => {
    seen.length = 0;
    child = spawn(
      process.execPath,
      ['--import', 'tsx', fileURLToPath(new URL('../programs/outbox-relay.ts', import.meta.url))],
      {
        env: {
          ...process.env,
          DATABASE_URL: db.database.url,
          MODE: mode,
          LEASE_MS: String(leaseMs),
          PUBLISH_TIMEOUT_MS: String(publishTimeoutMs),
        },
      },
    );
    child.stderr.pipe(process.stderr);
    lines = createInterface({ input: child.stdout });
    lines.on('line', (line) => seen.push(JSON.parse(line) as Record<string, unknown>));
  };
  const line = async (accepts: (entry: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> => {
    for (;;) {
      const found = seen.find(accepts);
      if (found) return found;
      await new Promise((resolve) => lines.once('line', resolve));
    }
  };
  afterEach(async () => {
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child?.once('exit', resolve));
    child.kill('SIGKILL');
    await gone;
  });

  test('frozen past its lease and woken (SIGSTOP, SIGCONT): its mark is refused and counted', async () => {
    const ids = await db.writeMany(2);
    launch({ leaseMs: 300 });
    await line(({ publishing }) => publishing !== undefined);
    child!.kill('SIGSTOP');
    await using relay = create({ leaseMs: 300, pollIdleMs: 20, name: 'relay-b' });
    const marked = nextEvent('outbox.marked');
    relay.start();
    expect((await marked).ids).toEqual(ids);
    child!.kill('SIGCONT');
    child!.stdin.write('answer\n');
    expect(await line(({ event }) => event === 'outbox.fenced')).toMatchObject({ count: 2 });
    expect(seen.some(({ event }) => event === 'outbox.marked')).toBe(false);
    expect((await db.rows()).every(({ status, attempts }) => status === 'PUBLISHED' && attempts === 2)).toBe(true);
  });

  test('killed after its claim (SIGKILL): the rows flow again in less than two leases', async () => {
    const leaseMs = 1_000;
    const ids = await db.writeMany(2);
    launch({ leaseMs });
    await line(({ publishing }) => publishing !== undefined);
    await using relay = create({ leaseMs, name: 'relay-b' });
    relay.start();
    const marked = nextEvent('outbox.marked');
    const killedAt = performance.now();
    child!.kill('SIGKILL');
    expect((await marked).ids).toEqual(ids);
    expect(performance.now() - killedAt).toBeLessThan(2 * leaseMs);
  });

  test('single-phase, frozen in the middle of its publish: the server ends its transaction, and it cannot commit any more (P3)', async () => {
    const ids = await db.writeMany(2);
    const publishTimeoutMs = 1_000;
    launch({ mode: 'single-phase', publishTimeoutMs });
    await line(({ publishing }) => publishing !== undefined);
    child!.kill('SIGSTOP');
    await using relay = create({ mode: 'single-phase', pollIdleMs: 20, name: 'relay-b' });
    const marked = nextEvent('outbox.marked');
    relay.start();
    const frozenAt = performance.now();
    expect((await marked).ids).toEqual(ids);
    // Stated: the publish's own bound and five seconds.
    expect(performance.now() - frozenAt).toBeLessThan(publishTimeoutMs + 5_000 + 2_000);
    child!.kill('SIGCONT');
    await line(({ event }) => event === 'outbox.errored');
    expect(seen.some(({ event }) => event === 'outbox.marked')).toBe(false);
    expect((await db.rows()).every(({ status, attempts }) => status === 'PUBLISHED' && attempts === 1)).toBe(true);
  });
});
