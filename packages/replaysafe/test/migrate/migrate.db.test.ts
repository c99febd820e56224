import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent } from '../../src/events.js';
import { assertMigrated, migrate, migrationStatus } from '../../src/migrate/index.js';
import { readMigrations } from '../../src/migrate/files.js';
import { migrateSql, migrationText } from '../../src/migrate/sql.js';

let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createDatabase(inject('databaseUrl'));
  pool = new pg.Pool({ connectionString: database.url });
});

afterEach(async () => {
  await pool.end();
  await database.drop();
});

const names = async () => (await readMigrations()).map((file) => file.name);
const forget = (name: string) => pool.query('delete from replaysafe.schema_migration where name = $1', [name]);

test('applies all files in order, announces each after its commit, and does nothing the second time', async () => {
  const seen: string[] = [];
  const listener = onEvent('migrate.applied', ({ name }) => seen.push(name));
  try {
    expect(await migrate(fromPg(pool))).toEqual({ applied: await names() });
    expect(await migrate(fromPg(pool))).toEqual({ applied: [] });
    expect(seen).toEqual(await names());
  } finally {
    listener.unsubscribe();
  }
  const status = await migrationStatus(fromPg(pool));
  expect(status.applied.map((row) => row.name)).toEqual(await names());
  expect(status).toMatchObject({ schema: 'replaysafe', pending: [], unknown: [], breaking: [], changed: [] });
  await assertMigrated(fromPg(pool));
});

test('an empty database is all pending, and a service that needs the schema refuses to start', async () => {
  expect(await migrationStatus(fromPg(pool))).toMatchObject({ applied: [], pending: await names() });
  await expect(assertMigrated(fromPg(pool))).rejects.toMatchObject({ code: 'RS_MIGRATE_PENDING' });
});

test('two processes that start at once apply each file once', async () => {
  const other = new pg.Pool({ connectionString: database.url });
  try {
    for (let round = 0; round < 10; round++) {
      const both = await Promise.all([migrate(fromPg(pool)), migrate(fromPg(other))]);
      expect(both.flatMap(({ applied }) => applied).sort()).toEqual(await names());
      await pool.query('drop schema replaysafe cascade');
    }
  } finally {
    await other.end();
  }
});

test('a process that waited for another finds its work done, though it had looked before', async () => {
  const [file] = await readMigrations();
  const { name, checksum, breaking, text } = file!;
  const faster = await pool.connect();
  await faster.query('begin');
  await faster.query("select pg_advisory_xact_lock(1919906669, hashtext('replaysafe'))");
  const waiting = migrate(fromPg(pool));
  await expect
    .poll(async () => {
      const { rows } = await faster.query(
        `select from pg_locks where locktype = 'advisory' and not granted
           and database = (select oid from pg_database where datname = current_database())`,
      );
      return rows.length;
    })
    .toBe(1);
  await faster.query(migrationText(text, '"replaysafe"'));
  await faster.query(migrateSql('"replaysafe"').record, [name, checksum, breaking]);
  await faster.query('commit');
  faster.release();
  expect((await waiting).applied).toEqual((await names()).filter((other) => other !== name));
});

test('a file whose text has changed since it was applied is refused', async () => {
  await migrate(fromPg(pool));
  await pool.query("update replaysafe.schema_migration set checksum = 'x' where name = '000-migrate-schema'");
  await expect(migrate(fromPg(pool))).rejects.toMatchObject({
    code: 'RS_MIGRATE_CHANGED',
    message: expect.stringContaining('000-migrate-schema') as string,
  });
  expect((await migrationStatus(fromPg(pool))).changed).toEqual(['000-migrate-schema']);
});

describe('what a newer version has applied', () => {
  const record = (name: string, breaking: boolean) =>
    pool.query('insert into replaysafe.schema_migration (name, checksum, breaking) values ($1, $2, $3)', [
      name,
      'y',
      breaking,
    ]);

  test('is fine while it only adds', async () => {
    await migrate(fromPg(pool));
    await record('099-later-column', false);
    expect(await migrate(fromPg(pool))).toEqual({ applied: [] });
    expect((await migrationStatus(fromPg(pool))).unknown).toEqual(['099-later-column']);
    await assertMigrated(fromPg(pool));
  });

  test('is refused when it breaks this version, and nothing is applied', async () => {
    await migrate(fromPg(pool));
    await record('099-later-drop', true);
    const refusal = { code: 'RS_MIGRATE_NEWER_SCHEMA', message: expect.stringContaining('099-later-drop') as string };
    await expect(migrate(fromPg(pool))).rejects.toMatchObject(refusal);
    await expect(assertMigrated(fromPg(pool))).rejects.toMatchObject(refusal);
  });
});

test('a file that fails is rolled back with its record', async () => {
  await migrate(fromPg(pool));
  await forget('000-migrate-schema');
  await expect(migrate(fromPg(pool))).rejects.toMatchObject({
    code: 'RS_MIGRATE_FAILED',
    message: expect.stringContaining('000-migrate-schema') as string,
    cause: { code: '42P07' },
  });
  expect((await migrationStatus(fromPg(pool))).pending).toEqual(['000-migrate-schema']);
});

test('R-SHUT-DB-3: a process that is stopping starts no migration', async () => {
  const signals = { stopping: AbortSignal.abort(), deadline: new AbortController().signal, budgetMs: 1_000 };
  await expect(migrate(fromPg(pool), { signals })).rejects.toMatchObject({ code: 'RS_MIGRATE_STOPPING' });
  expect((await migrationStatus(fromPg(pool))).applied).toEqual([]);
});

test('another schema name holds its own tables', async () => {
  await migrate(fromPg(pool), { schema: 'payments_rs' });
  const { rows } = await pool.query(
    "select to_regclass('payments_rs.schema_migration') as here, to_regclass('replaysafe.schema_migration') as there",
  );
  expect(rows).toEqual([{ here: 'payments_rs.schema_migration', there: null }]);
  await expect(migrate(fromPg(pool), { schema: 'Bad"Name' })).rejects.toMatchObject({ code: 'RS_OPTION_INVALID' });
});

test('uuid_v7 makes version 7 ids that sort by time', async () => {
  await migrate(fromPg(pool));
  const { rows } = await pool.query<{ id: string; now: string }>(
    'select replaysafe.uuid_v7() as id, extract(epoch from clock_timestamp()) * 1000 as now from generate_series(1, 200)',
  );
  for (const { id, now } of rows) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Math.abs(parseInt(id.replaceAll('-', '').slice(0, 12), 16) - Number(now))).toBeLessThan(1_000);
  }
  expect(new Set(rows.map(({ id }) => id)).size).toBe(200);
  const first = rows[0]!.id;
  expect(rows.at(-1)!.id > first).toBe(true);
});
