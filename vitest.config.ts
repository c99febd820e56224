import { defineConfig } from 'vitest/config';

const tests = (kind: string) => [
  `packages/*/test/**/*${kind}.test.ts`,
  `examples/*/test/**/*${kind}.test.ts`,
  `test/**/*${kind}.test.ts`,
];
const everyService = ['.process', '.db', '.kafka', '.crash', '.drain', '.pack'].flatMap(tests);

/**
 * One project for each kind of test, told by the file's name: `x.test.ts` needs nothing but Node, `x.process.test.ts` starts processes of its own, `x.db.test.ts` a
 * PostgreSQL, `x.kafka.test.ts` PostgreSQL and Kafka, `x.crash.test.ts` both and real child processes that are killed.
 */
export default defineConfig({
  test: {
    // Two cores: the services need one of them.
    maxWorkers: 2,
    projects: [
      { test: { name: 'unit', include: tests(''), exclude: everyService, testTimeout: 5_000 } },
      // A process of its own for each test: most of its time is the start of it.
      { test: { name: 'process', include: tests('.process'), testTimeout: 60_000 } },
      {
        test: {
          name: 'db',
          include: tests('.db'),
          globalSetup: ['packages/test-services/setup/postgres.ts'],
          testTimeout: 30_000,
        },
      },
      {
        test: {
          name: 'kafka',
          include: tests('.kafka'),
          globalSetup: ['packages/test-services/setup/postgres.ts', 'packages/test-services/setup/kafka.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'crash',
          include: tests('.crash'),
          globalSetup: ['packages/test-services/setup/postgres.ts', 'packages/test-services/setup/kafka.ts'],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      { test: { name: 'drain', include: tests('.drain'), testTimeout: 60_000 } },
      { test: { name: 'pack', include: tests('.pack'), testTimeout: 240_000, hookTimeout: 240_000 } },
    ],
  },
});
