import { migrate } from 'replaysafe/migrate';
import type { DatabaseCommand } from '../command.js';

export const migrateCommand: DatabaseCommand = {
  needs: 'database',
  name: 'migrate',
  summary: 'apply the migrations that the database does not have',
  run: async ({ sql, schema }) => {
    const { applied } = await migrate(sql, { schema });
    return {
      json: { schema, applied },
      lines:
        applied.length === 0 ? [`${schema}: nothing to apply`] : applied.map((name) => `${schema}: applied ${name}`),
    };
  },
};
