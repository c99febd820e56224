import { DataSource } from 'typeorm';
import { fromTypeorm } from '../../src/adapters/sql/typeorm.js';

/** Runs one statement in one transaction of the port, for a test that kills it there. */
const [url, text] = process.argv.slice(2) as [string, string];
const dataSource = await new DataSource({ type: 'postgres', url }).initialize();
await fromTypeorm(dataSource).transaction((tx) => tx.query(text), { statementTimeoutMs: 60_000 });
await dataSource.destroy();
