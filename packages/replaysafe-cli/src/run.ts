import pg from 'pg';
import { ERRORS, hasCode } from 'replaysafe';
import { fromPg } from 'replaysafe/adapters/sql/pg';
import { readArguments, usage, UsageError, type Arguments } from './arguments.js';
import { migrateCommand } from './commands/migrate.js';
import { statusCommand } from './commands/status.js';

const COMMANDS = [migrateCommand, statusCommand];

export interface Output {
  out(text: string): void;
  err(text: string): void;
}

/** Runs one command line; returns the exit code. */
export async function run(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  output: Output,
): Promise<number> {
  let given: Arguments | undefined;
  try {
    given = readArguments(argv, environment, COMMANDS);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    output.err(`replaysafe: ${error.message}\n\n${usage(COMMANDS)}`);
    return 2;
  }
  if (given === undefined) {
    output.out(usage(COMMANDS));
    return 0;
  }
  const pool = new pg.Pool({
    connectionString: given.databaseUrl,
    max: 1,
    connectionTimeoutMillis: 10_000,
    application_name: 'replaysafe-cli',
  });
  try {
    const { json, lines, failed = false } = await given.command.run({ sql: fromPg(pool), schema: given.schema });
    output.out(given.json ? JSON.stringify(json) : lines.join('\n'));
    return failed ? 1 : 0;
  } catch (error) {
    return report(error, given.json, output);
  } finally {
    await pool.end();
  }
}

/** Wrong options are wrong usage; everything else has failed. The code of an error is printed with it. */
function report(error: unknown, json: boolean, output: Output): number {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
  const message = messageOf(error);
  output.err(json ? JSON.stringify({ error: { code, message } }) : `replaysafe: ${code}: ${message}`);
  return hasCode(error, 'RS_OPTION_INVALID', 'RS_OPTION_UNKNOWN', 'RS_OPTION_REQUIRED') ? 2 : 1;
}

/** Our sentences are about the operation; what the server or the network said stands in the cause. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Several addresses were tried: each has an error, the whole has no text.
  const own = error.message === '' && error instanceof AggregateError ? String(error.errors[0]) : error.message;
  const isOurs = 'code' in error && typeof error.code === 'string' && Object.hasOwn(ERRORS, error.code);
  return isOurs && error.cause !== undefined ? `${own} (${messageOf(error.cause)})` : own;
}
