import pg from 'pg';
import { describe, expect, inject, it } from 'vitest';
import { createDatabase } from '../src/index.js';

const ask = async (url: string, text: string): Promise<Record<string, unknown>[]> => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
};

describe('createDatabase', () => {
  it('gives each caller a database of its own, and drops it under open connections', async () => {
    const url = inject('databaseUrl');
    await using first = await createDatabase(url);
    await using second = await createDatabase(url);
    await ask(first.url, 'CREATE TABLE mine (id int)');
    expect(await ask(second.url, "SELECT to_regclass('mine') AS found")).toEqual([{ found: null }]);

    const open = new pg.Client({ connectionString: first.url });
    open.on('error', () => undefined);
    await open.connect();
    await first.drop();
    expect(await ask(url, `SELECT datname FROM pg_database WHERE datname = '${first.name}'`)).toEqual([]);
    await open.end().catch(() => undefined);
  });
});
