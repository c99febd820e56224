import { ERRORS, hasCode } from 'replaysafe';
import { readArguments, usage, type Arguments, type DatabaseArguments, type FileArguments } from './arguments.js';
import { UsageError, type Command, type CommandResult } from './command.js';
import { checkCommand } from './commands/check.js';
import { migrateCommand } from './commands/migrate.js';
import { statusCommand } from './commands/status.js';
import { TASK_COMMANDS } from './commands/tasks.js';

const COMMANDS: readonly Command[] = [migrateCommand, statusCommand, checkCommand, ...TASK_COMMANDS];

/** The terminal. */
export interface Streams {
  out(text: string): void;
  err(text: string): void;
  /** Everything on standard input. */
  input(): Promise<string>;
}

/** Runs one command line; returns the exit code. */
export async function run(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  streams: Streams,
): Promise<number> {
  let given: Arguments | undefined;
  try {
    given = readArguments(argv, environment, COMMANDS);
    if (given === undefined) {
      streams.out(usage(COMMANDS));
      return 0;
    }
    return print(await carryOut(given, streams), given.json, streams);
  } catch (error) {
    if (error instanceof UsageError) {
      streams.err(`replaysafe: ${error.message}\n\n${usage(COMMANDS)}`);
      return 2;
    }
    if (given === undefined) throw error;
    return report(error, given.json, streams);
  }
}

async function carryOut(given: Arguments, streams: Streams): Promise<CommandResult> {
  return 'databaseUrl' in given ? onDatabase(given) : onFiles(given, streams);
}

function onFiles({ command, files, options }: FileArguments, streams: Streams): Promise<CommandResult> {
  return command.run({ files, options, input: () => streams.input() });
}

async function onDatabase({ command, databaseUrl, ...given }: DatabaseArguments): Promise<CommandResult> {
  // Loaded here: a check of files needs no driver.
  const [{ default: pg }, { fromPg }] = await Promise.all([import('pg'), import('replaysafe/adapters/sql/pg')]);
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    max: 1,
    connectionTimeoutMillis: 10_000,
    application_name: 'replaysafe-cli',
  });
  try {
    const { schema, operands, options } = given;
    return await command.run({ sql: fromPg(pool), schema, operands, options });
  } finally {
    await pool.end();
  }
}

function print(result: CommandResult, json: boolean, streams: Streams): number {
  const { lines, failed = false, unreadable = [], isDocument = false } = result;
  if (json || isDocument) streams.out(JSON.stringify(result.json));
  else if (lines.length > 0) streams.out(lines.join('\n'));
  for (const line of unreadable) streams.err(`replaysafe: ${line}`);
  if (unreadable.length > 0) return 2;
  return failed ? 1 : 0;
}

/** Wrong options are wrong usage; everything else has failed. The code of an error is printed with it. */
function report(error: unknown, json: boolean, streams: Streams): number {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
  const message = messageOf(error);
  streams.err(json ? JSON.stringify({ error: { code, message } }) : `replaysafe: ${code}: ${message}`);
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
