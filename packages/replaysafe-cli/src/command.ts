import type { SqlPort } from 'replaysafe';

/** One word of the command line, in a file of its own. */
export type Command = DatabaseCommand | FileCommand;

interface Named {
  /** What is typed, e.g. `outbox dead`. */
  readonly name: string;
  readonly summary: string;
}

export interface DatabaseCommand extends Named {
  readonly needs: 'database';
  /** What is typed behind the name, as the usage has it; a command without it stands alone. */
  readonly operands?: string;
  /** Options beside those of every command that needs a database. */
  readonly options?: Readonly<Record<string, CommandOption>>;
  /** Returns what `--json` prints, and the lines printed without it. */
  run(context: DatabaseContext): Promise<CommandResult>;
}

/** Works on files and on standard input; knows no database. */
export interface FileCommand extends Named {
  readonly needs: 'files';
  /** How the files are named in the usage. */
  readonly operands: string;
  /** Options beside `--json`. */
  readonly options: Readonly<Record<string, CommandOption>>;
  run(context: FileContext): Promise<CommandResult>;
}

export interface CommandOption {
  readonly type: 'string' | 'boolean';
  readonly summary: string;
  /** What stands behind it in the usage, e.g. `<file>`. */
  readonly value?: string;
}

export interface DatabaseContext {
  readonly sql: SqlPort;
  readonly schema: string;
  readonly operands: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
}

export interface FileContext {
  readonly files: readonly string[];
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  /** The text on standard input. */
  readonly input: () => Promise<string>;
}

export interface CommandResult {
  readonly json: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
  /** Exit code 1: it was carried out, and what it found needs somebody. Default false. */
  readonly failed?: boolean;
  /** What could not be read, for stderr. Exit code 2 where there is any. */
  readonly unreadable?: readonly string[];
  /** `json` is printed even without `--json`: another format was asked for. */
  readonly isDocument?: boolean;
}

/** Wrong usage: answered with the usage and exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
