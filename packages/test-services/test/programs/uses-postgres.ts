/**
 * Starts a PostgreSQL of its own, says so in one line, and goes on until it is stopped from outside. On SIGINT it
 * still needs the database: it asks it something, and only then stops it.
 */
import pg from 'pg';
import { startPostgres } from '../../src/index.js';

const service = await startPostgres({ alwaysOwn: true });
const stay = setInterval(() => undefined, 60_000);

const ask = async (text: string): Promise<Record<string, string> | undefined> => {
  const client = new pg.Client({ connectionString: service.url });
  await client.connect();
  try {
    return (await client.query<Record<string, string>>(text)).rows[0];
  } finally {
    await client.end();
  }
};

process.on('SIGINT', () => {
  void (async () => {
    console.log(JSON.stringify(await ask("SELECT 'still here' AS answer")));
    await service.stop();
    clearInterval(stay);
  })();
});

console.log(JSON.stringify({ pid: service.pid, ...(await ask('SHOW data_directory')) }));
