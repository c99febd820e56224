import { execFile } from 'node:child_process';
import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let database: TestDatabase;

beforeEach(async () => {
  database = await createDatabase(inject('databaseUrl'));
});

afterEach(() => database.drop());

/** Runs the built program, as an installed one is run. */
function replaysafe(args: readonly string[], url: string | null = database.url): Promise<Ended> {
  const program = new URL('../dist/main.js', import.meta.url).pathname;
  const environment = { ...process.env };
  if (url === null) delete environment['DATABASE_URL'];
  else environment['DATABASE_URL'] = url;
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env: environment }, (error, out, err) => {
      resolve({ code: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

async function query(text: string): Promise<unknown[]> {
  const client = new pg.Client(database.url);
  await client.connect();
  try {
    return (await client.query(text)).rows as unknown[];
  } finally {
    await client.end();
  }
}

test('migrate applies what is missing, and says that nothing is missing the second time', async () => {
  const first = await replaysafe(['migrate']);
  expect(first).toMatchObject({ code: 0, err: '' });
  expect(first.out).toContain('replaysafe: applied 000-migrate-schema\n');
  expect(await replaysafe(['migrate'])).toEqual({ code: 0, out: 'replaysafe: nothing to apply\n', err: '' });
});

test('two that migrate at once share the work', async () => {
  const both = await Promise.all([replaysafe(['migrate', '--json']), replaysafe(['migrate', '--json'])]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  const applied = both.flatMap(({ out }) => (JSON.parse(out) as { applied: string[] }).applied).sort();
  expect(applied[0]).toBe('000-migrate-schema');
  expect(new Set(applied).size).toBe(applied.length);
});

test('status shows what is pending before, and what is applied and in the outbox after', async () => {
  const before = await replaysafe(['status', '--json']);
  expect(before).toMatchObject({ code: 1, err: '' });
  expect(JSON.parse(before.out)).toMatchObject({ schema: 'replaysafe', applied: [], outbox: null });
  expect(JSON.parse(before.out)).toHaveProperty('pending.0', '000-migrate-schema');
  const told = await replaysafe(['status']);
  expect(told).toMatchObject({ code: 1, err: '' });
  expect(told.out).toContain('replaysafe: 000-migrate-schema pending\n');
  expect(told.out).toContain('not migrated to this version; run `npx replaysafe-cli migrate`\n');
  expect((await replaysafe(['status', '--schema', 'other'])).out).toContain('migrate --schema other`\n');
  await replaysafe(['migrate']);
  const after = await replaysafe(['status', '--json']);
  expect(after.code).toBe(0);
  expect(JSON.parse(after.out)).toMatchObject({ pending: [], unknown: [], outbox: { pending: 0, dead: 0 } });
  const { code, out: lines } = await replaysafe(['status']);
  expect(code).toBe(0);
  expect(lines).not.toContain('npx');
  expect(lines).toMatch(/^replaysafe: 000-migrate-schema applied \d{4}-/);
  expect(lines).toContain('outbox: 0 pending, 0 publishing, 0 dead');
});

test('options go before the environment, and the schema can be another', async () => {
  const elsewhere = await replaysafe(
    ['migrate', '--schema', 'other', '--database-url', database.url],
    'postgres://nowhere',
  );
  expect(elsewhere.code).toBe(0);
  expect(await query("select nspname from pg_namespace where nspname in ('other', 'replaysafe')")).toEqual([
    { nspname: 'other' },
  ]);
});

test('a refusal is printed with its code, on stderr, and exits 1', async () => {
  await replaysafe(['migrate']);
  await query("insert into replaysafe.schema_migration (name, checksum, breaking) values ('099-later', 'x', true)");
  const refused = await replaysafe(['migrate']);
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(/^replaysafe: RS_MIGRATE_NEWER_SCHEMA: .*099-later/);
  const asJson = await replaysafe(['migrate', '--json']);
  expect(JSON.parse(asJson.err)).toMatchObject({ error: { code: 'RS_MIGRATE_NEWER_SCHEMA' } });
  expect((await replaysafe(['status'])).out).toContain('099-later applied');
});

test('a database that cannot be reached is told with the reason, and no password', async () => {
  const refused = await replaysafe(['status', '--database-url', 'postgres://u:secret@127.0.0.1:1/db']);
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toMatch(/^replaysafe: RS_SQL_UNAVAILABLE: .*ECONNREFUSED/);
  expect(refused.err).not.toContain('secret');
});

test.each([
  [[], 'no command was given'],
  [['outbox', 'eat'], 'there is no command "outbox eat"'],
  [['migrate', '--shema', 'x'], '--shema'],
  [['migrate', '--database-url', 'not a url'], 'the database URL is no URL'],
])('wrong usage %j exits 2 with the usage', async (args, complaint) => {
  const wrong = await replaysafe(args);
  expect(wrong).toMatchObject({ code: 2, out: '' });
  expect(wrong.err).toContain(complaint);
  expect(wrong.err).toContain('Usage: replaysafe <command> [options]');
});

test('without any database URL, and with a schema that is none, it exits 2', async () => {
  const missing = await replaysafe(['migrate'], null);
  expect(missing.code).toBe(2);
  expect(missing.err).toContain('needs --database-url or DATABASE_URL');
  const bad = await replaysafe(['migrate', '--schema', 'Bad Name']);
  expect(bad.code).toBe(2);
  expect(bad.err).toContain('RS_OPTION_INVALID');
});

test('help is no error', async () => {
  const help = await replaysafe(['--help'], null);
  expect(help).toMatchObject({ code: 0, err: '' });
  expect(help.out).toContain('migrate');
  expect(help.out).toContain('1 failed (status: migrations are pending; check: a rule is broken)');
});

test('tasks can be listed, shown, redriven and cancelled', async () => {
  await replaysafe(['migrate']);
  const insert = `insert into replaysafe.task (kind, key, input, max_failures, status, finished_at, last_error)`;
  await query(`${insert} values ('receipt', 'k-1', '{"n":1}', 1, 'FAILED', now(), 'no mail server'),
    ('receipt', 'k-2', '{"n":2}', 1, 'PENDING', null, null)`);
  const listed = JSON.parse((await replaysafe(['tasks', 'list', '--status', 'FAILED', '--json'])).out) as {
    tasks: { id: string; lastError: string; input?: unknown }[];
  };
  expect(listed.tasks).toMatchObject([{ lastError: 'no mail server' }]);
  expect(listed.tasks[0]).not.toHaveProperty('input');
  const { id } = listed.tasks[0]!;
  expect((await replaysafe(['tasks', 'show', id])).out).toContain('input: {"n":1}');
  expect(await replaysafe(['tasks', 'redrive', id])).toEqual({ code: 0, out: `${id}: PENDING\n`, err: '' });
  expect(await replaysafe(['tasks', 'redrive', '--kind', 'receipt'])).toMatchObject({
    code: 1,
    out: 'nothing to redrive\n',
  });
  expect(await replaysafe(['tasks', 'cancel', id])).toMatchObject({ code: 0, out: `${id}: cancelled\n` });
  expect((await replaysafe(['tasks', 'list', '--kind', 'receipt'])).out.split('\n')).toHaveLength(3);
});

test.each([
  [['tasks', 'show'], 'needs one id'],
  [['tasks', 'redrive'], 'needs ids, or --kind'],
  [['tasks', 'list', '--status', 'LOST'], 'must be one of'],
  [['tasks', 'nonsense'], 'there is no command'],
])('%j is wrong usage', async (args, said) => {
  await replaysafe(['migrate']);
  expect(await replaysafe(args)).toMatchObject({ code: 2, err: expect.stringContaining(said) as string });
});

test('a task that does not exist is said to be missing', async () => {
  await replaysafe(['migrate']);
  const id = '00000000-0000-7000-8000-000000000000';
  expect(await replaysafe(['tasks', 'show', id])).toMatchObject({ code: 1, out: `there is no task ${id}\n` });
});
