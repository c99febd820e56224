import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { migrate } from '../../src/migrate/index.js';
import { createOutbox, createRelay } from '../../src/outbox/index.js';
import { nextEvent, ScriptedPublisher } from './support.js';

const EVENT = { topic: 'orders', type: 'OrderConfirmed', payload: { n: 1 } };

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url });
});
beforeEach(() => pool.query('drop schema if exists replaysafe cascade'));
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const pendingOf = (state: string) => ({
  code: 'RS_MIGRATE_PENDING',
  message: expect.stringContaining('run `npx replaysafe-cli migrate`') as unknown,
  cause: expect.objectContaining({ code: state }) as unknown,
});

test('enqueue and status say that the migration is missing, with what the server said as the cause', async () => {
  const sql = fromPg(pool);
  const outbox = createOutbox({ sql });
  const enqueue = () => sql.transaction((tx) => outbox.enqueue(tx, EVENT));
  await expect(enqueue()).rejects.toMatchObject(pendingOf('42P01'));
  await expect(outbox.status()).rejects.toMatchObject(pendingOf('42P01'));
  await expect(outbox.status({ countPublished: true })).rejects.toMatchObject(pendingOf('42P01'));
  await migrate(sql);
  await pool.query('drop function replaysafe.uuid_v7() cascade');
  await expect(enqueue()).rejects.toMatchObject(pendingOf('42883'));
});

test.each(['single-phase', 'two-phase'] as const)(
  'a %s relay logs the way out at each back-off, and publishes as soon as somebody has migrated',
  async (mode) => {
    const sql = fromPg(pool);
    const publisher = new ScriptedPublisher();
    const errors: { fields: object; message: string }[] = [];
    const warnings: string[] = [];
    const ignore = () => undefined;
    const logger = {
      debug: ignore,
      info: ignore,
      warn: (_: object, message: string) => void warnings.push(message),
      error: (fields: object, message: string) => void errors.push({ fields, message }),
    };
    await using relay = createRelay({
      sql,
      publisher,
      mode,
      logger,
      name: 'relay-a',
      pollIdleMs: 20,
      backoff: { baseMs: 5, capMs: 50 },
    });
    const errored = nextEvent('outbox.errored');
    relay.start();
    expect((await errored).error).toMatchObject(pendingOf('42P01'));
    await nextEvent('outbox.errored');
    expect(warnings).toEqual([]);
    expect(errors.length).toBeGreaterThanOrEqual(2);
    expect(errors[0]).toMatchObject({
      fields: { relay: 'relay-a', code: 'RS_MIGRATE_PENDING', err: pendingOf('42P01') },
      message: expect.stringContaining('npx replaysafe-cli migrate') as unknown,
    });
    await migrate(sql);
    const marked = nextEvent('outbox.marked');
    const [written] = await sql.transaction((tx) => createOutbox({ sql }).enqueue(tx, EVENT));
    expect((await marked).ids).toEqual([written?.id]);
  },
);
