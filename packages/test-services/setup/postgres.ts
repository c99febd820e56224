import { startOnce, startPostgres } from '@replaysafe/test-services';
import { type TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Connection string of a superuser; each test file makes its own database with `createDatabase`. */
    databaseUrl: string;
  }
}

/** Gives a vitest project a PostgreSQL, one for all projects of a run. */
export default async (project: TestProject): Promise<() => Promise<void>> => {
  const { service, release } = await startOnce('postgres', () => startPostgres());
  project.provide('databaseUrl', service.url);
  return release;
};
