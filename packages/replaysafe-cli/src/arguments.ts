import { parseArgs } from 'node:util';
import type { Command } from './command.js';

export interface Arguments {
  readonly command: Command;
  readonly databaseUrl: string;
  readonly schema: string;
  readonly json: boolean;
}

/** Wrong usage: answered with the usage and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

const OPTIONS = {
  'database-url': { type: 'string' },
  schema: { type: 'string', default: 'replaysafe' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

/**
 * Reads the command line; `undefined` where help was asked for.
 * @throws UsageError
 */
export function readArguments(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  commands: readonly Command[],
): Arguments | undefined {
  const { values, positionals } = parse(argv);
  if (values.help) return undefined;
  const typed = positionals.join(' ');
  const command = commands.find(({ name }) => name === typed);
  if (command === undefined) {
    throw new UsageError(typed === '' ? 'no command was given' : `there is no command "${typed}"`);
  }
  const databaseUrl = values['database-url'] ?? environment['DATABASE_URL'];
  if (databaseUrl === undefined || databaseUrl === '') {
    throw new UsageError('needs --database-url or DATABASE_URL');
  }
  if (!URL.canParse(databaseUrl)) throw new UsageError('the database URL is no URL');
  return { command, databaseUrl, schema: values.schema, json: values.json };
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

export function usage(commands: readonly Command[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  return [
    'Usage: replaysafe <command> [options]',
    '',
    'Commands:',
    ...commands.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Options:',
    '  --database-url <url>  where PostgreSQL is; default: the environment variable DATABASE_URL',
    '  --schema <name>       the schema of the tables; default: replaysafe',
    '  --json                print one JSON object',
    '  -h, --help            print this',
    '',
    'Exit codes: 0 done, 1 failed (status: migrations are pending), 2 wrong usage.',
  ].join('\n');
}
