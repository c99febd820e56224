import { migrationStatus, type MigrationStatus } from 'replaysafe/migrate';
import { createOutbox, type OutboxStatus } from 'replaysafe/outbox';
import type { DatabaseCommand, DatabaseContext } from '../command.js';

export const statusCommand: DatabaseCommand = {
  needs: 'database',
  name: 'status',
  summary: 'show which migrations are applied (exit code 1 where some are pending), and what the outbox holds',
  run: async (context) => {
    const migrations = await migrationStatus(context.sql, { schema: context.schema });
    const outbox = await outboxStatus(context, migrations);
    return {
      json: { ...migrations, outbox },
      failed: migrations.pending.length > 0,
      lines: [...migrationLines(migrations), ...wayOut(migrations), ...(outbox === null ? [] : outboxLines(outbox))],
    };
  },
};

async function outboxStatus(
  { sql, schema }: DatabaseContext,
  migrations: MigrationStatus,
): Promise<OutboxStatus | null> {
  const hasTable = migrations.applied.some(({ name }) => name === '020-outbox-event');
  return hasTable ? createOutbox({ sql, schema }).status() : null;
}

function migrationLines(status: MigrationStatus): string[] {
  const { schema, applied, pending, unknown, breaking, changed } = status;
  return [
    ...applied.map(({ name, appliedAt }) => `${schema}: ${name} applied ${appliedAt.toISOString()}${mark(name)}`),
    ...pending.map((name) => `${schema}: ${name} pending`),
  ];

  function mark(name: string): string {
    if (breaking.includes(name)) return ' by a newer version, which this one cannot work with';
    if (unknown.includes(name)) return ' by a newer version';
    return changed.includes(name) ? ', but its text is another one now' : '';
  }
}

function wayOut({ schema, pending }: MigrationStatus): string[] {
  if (pending.length === 0) return [];
  const option = schema === 'replaysafe' ? '' : ` --schema ${schema}`;
  return [`${schema}: not migrated to this version; run \`npx replaysafe-cli migrate${option}\``];
}

function outboxLines({ pending, publishing, dead, oldestOpenAgeMs }: OutboxStatus): string[] {
  return [`outbox: ${pending} pending, ${publishing} publishing, ${dead} dead; oldest open ${oldestOpenAgeMs} ms`];
}
