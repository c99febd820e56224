import pg from 'pg';
import { fromPg } from '../../src/adapters/sql/pg.js';

/** Runs one statement in one transaction of the port, for a test that kills it there. */
const [url, text] = process.argv.slice(2) as [string, string];
const pool = new pg.Pool({ connectionString: url });
await fromPg(pool).transaction((tx) => tx.query(text), { statementTimeoutMs: 60_000 });
await pool.end();
