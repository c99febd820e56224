import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import type pg from 'pg';
import { sqlConformance, type SqlHarness } from '../../../src/testing/sql-conformance.js';
import { pgHarness } from './pg-harness.js';

describe.each(['plain', 'pipeline', 'without transaction status'] as const)('pg, %s', (variant) => {
  let harness: SqlHarness<pg.PoolClient>;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const opened = await pgHarness(variant, inject('databaseUrl'));
    harness = opened.harness;
    stop = opened.stop;
  });
  afterAll(() => stop());

  // A client that does not tell its status cannot be joined from outside: see the adapter's own test.
  const cases = sqlConformance<pg.PoolClient>().filter(
    ({ name }) => variant !== 'without transaction status' || !name.startsWith('join '),
  );
  for (const { name, run } of cases) test(name, () => run(harness));
});
