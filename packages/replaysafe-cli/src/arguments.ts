import { parseArgs } from 'node:util';
import { UsageError, type Command, type CommandOption, type DatabaseCommand, type FileCommand } from './command.js';

export type Arguments = DatabaseArguments | FileArguments;

export interface DatabaseArguments {
  readonly command: DatabaseCommand;
  readonly databaseUrl: string;
  readonly schema: string;
  readonly operands: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly json: boolean;
}

export interface FileArguments {
  readonly command: FileCommand;
  readonly files: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly json: boolean;
}

type Options = Readonly<Record<string, CommandOption & { readonly short?: string }>>;
type Values = Readonly<Record<string, string | boolean | undefined>>;

const DATABASE_OPTIONS: Options = {
  'database-url': {
    type: 'string',
    value: '<url>',
    summary: 'where PostgreSQL is; default: the environment variable DATABASE_URL',
  },
  schema: { type: 'string', value: '<name>', summary: 'the schema of the tables; default: replaysafe' },
};
const COMMON_OPTIONS: Options = {
  json: { type: 'boolean', summary: 'print one JSON object' },
  help: { type: 'boolean', short: 'h', summary: 'print this' },
};

/**
 * Reads the command line; `undefined` where help was asked for.
 * @throws UsageError
 */
export function readArguments(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  commands: readonly Command[],
): Arguments | undefined {
  const { values, positionals } = parse(argv, commands);
  if (values['help'] === true) return undefined;
  const command = commandOf(positionals, commands);
  refuseForeign(command, values);
  const json = values['json'] === true;
  const operands = positionals.slice(command.name.split(' ').length);
  if (command.needs === 'files') return { command, files: operands, options: values, json };
  const databaseUrl = text(values['database-url']) ?? environment['DATABASE_URL'];
  if (databaseUrl === undefined || databaseUrl === '') {
    throw new UsageError('needs --database-url or DATABASE_URL');
  }
  if (!URL.canParse(databaseUrl)) throw new UsageError('the database URL is no URL');
  return { command, databaseUrl, schema: text(values['schema']) ?? 'replaysafe', operands, options: values, json };
}

/** The command that is typed: one that takes files or other operands may be followed by them, any other stands alone. */
function commandOf(positionals: readonly string[], commands: readonly Command[]): Command {
  const typed = positionals.join(' ');
  const command = commands.find(({ name, operands }) =>
    operands === undefined ? typed === name : `${typed} `.startsWith(`${name} `),
  );
  if (command !== undefined) return command;
  throw new UsageError(typed === '' ? 'no command was given' : `there is no command "${typed}"`);
}

function refuseForeign(command: Command, values: Values): void {
  const own = { ...COMMON_OPTIONS, ...optionsOf(command) };
  const foreign = Object.keys(values).find((name) => !Object.hasOwn(own, name));
  if (foreign !== undefined) throw new UsageError(`${command.name} has no option --${foreign}`);
}

function optionsOf(command: Command): Options {
  return command.needs === 'files' ? command.options : { ...DATABASE_OPTIONS, ...command.options };
}

function allOptions(commands: readonly Command[]): Options {
  return Object.assign({}, DATABASE_OPTIONS, ...commands.map(optionsOf), COMMON_OPTIONS) as Options;
}

function parse(argv: readonly string[], commands: readonly Command[]) {
  const options = Object.fromEntries(
    Object.entries(allOptions(commands)).map(([name, { type, short }]) => [name, { type, ...(short && { short }) }]),
  );
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function text(value: string | boolean | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function usage(commands: readonly Command[]): string {
  const typed = (command: Command): string =>
    command.operands === undefined ? command.name : `${command.name} ${command.operands}`;
  const withOptions = commands.filter(({ options = {} }) => Object.keys(options).length > 0);
  return [
    'Usage: replaysafe <command> [options]',
    '',
    'Commands:',
    ...columns(commands.map((command) => [typed(command), command.summary])),
    '',
    'Options:',
    ...columns(optionRows(COMMON_OPTIONS)),
    '',
    'Options of commands that need a database:',
    ...columns(optionRows(DATABASE_OPTIONS)),
    ...withOptions.flatMap(({ name, options = {} }) => ['', `Options of ${name}:`, ...columns(optionRows(options))]),
    '',
    'Exit codes: 0 done, 1 failed (status: migrations are pending; check: a rule is broken), 2 wrong usage or unreadable files.',
  ].join('\n');
}

function optionRows(options: Options): [string, string][] {
  return Object.entries(options).map(([name, { short, value, summary }]) => [
    `${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`,
    summary,
  ]);
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
