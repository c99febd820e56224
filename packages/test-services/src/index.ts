export {
  createDatabase,
  type PostgresOptions,
  type PostgresService,
  startPostgres,
  type TestDatabase,
} from './postgres.js';
export { startOnce } from './once.js';
