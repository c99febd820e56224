export { migrate, type MigrateOptions } from './migrate.js';
export { assertMigrated, migrationStatus, type MigrationStatus, type MigrationStatusOptions } from './status.js';
