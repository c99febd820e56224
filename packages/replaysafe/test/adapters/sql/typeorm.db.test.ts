import { afterAll, beforeAll, describe, inject, test } from 'vitest';
import type { EntityManager } from 'typeorm';
import { sqlConformance, type SqlHarness } from '../../../src/testing/sql-conformance.js';
import { typeormHarness } from './typeorm-harness.js';

describe('typeorm', () => {
  let harness: SqlHarness<EntityManager>;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    const opened = await typeormHarness(inject('databaseUrl'));
    harness = opened.harness;
    stop = opened.stop;
  });
  afterAll(() => stop());

  for (const { name, run } of sqlConformance<EntityManager>()) test(name, () => run(harness));
});
