import type { SqlPort } from 'replaysafe';

/** One word of the command line, in a file of its own. */
export interface Command {
  /** What is typed, e.g. `outbox dead`. */
  readonly name: string;
  readonly summary: string;
  /** Returns what `--json` prints, and the lines printed without it. */
  run(context: CommandContext): Promise<CommandResult>;
}

export interface CommandContext {
  readonly sql: SqlPort;
  readonly schema: string;
}

export interface CommandResult {
  readonly json: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
  /** Exit code 1: it was carried out, and what it found needs somebody. Default false. */
  readonly failed?: boolean;
}
