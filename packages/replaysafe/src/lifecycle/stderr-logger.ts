import { writeSync } from 'node:fs';
import { silentLogger, type Logger } from '../ports/logger.js';

const STDERR = 2;
const LONGEST_CHAIN = 5;

/**
 * The lifecycle's logger where none was given: warnings and errors on stderr, since a service that crashes or does not stop in
 * time must not do so in silence. Nothing below `warn`.
 *
 * Written synchronously, because the process may end with the next statement, and not through the stream, whose failure
 * would come back as an uncaught error of its own. Throws where stderr takes nothing.
 */
export const stderrLogger: Logger = {
  ...silentLogger,
  warn: (fields, message) => {
    writeSync(STDERR, logLine('warn', fields, message));
  },
  error: (fields, message) => {
    writeSync(STDERR, logLine('error', fields, message));
  },
};

/** `level: message {fields}`, followed by the stack, code and causes of each error among the fields. */
export function logLine(level: 'warn' | 'error', fields: object, message: string): string {
  const errors: string[] = [];
  const plain: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    // What was thrown need not be an error.
    if (value instanceof Error) errors.push(errorLines(value));
    else plain[name] = value;
  }
  return `${[`${level}: ${message} ${asJson(plain)}`, ...errors].join('\n')}\n`;
}

/** Its own fields are left out: those of a driver's error may hold keys. */
function errorLines(error: Error): string {
  const lines: string[] = [];
  let current: unknown = error;
  for (let depth = 0; current instanceof Error && depth < LONGEST_CHAIN; depth++) {
    const told = 'code' in current ? current.code : undefined;
    const code = typeof told === 'string' || typeof told === 'number' ? `\n    code: ${told}` : '';
    lines.push(`${depth === 0 ? '' : 'caused by '}${current.stack ?? `${current.name}: ${current.message}`}${code}`);
    // The one address of several speaks for all of them.
    current = current.cause ?? (current instanceof AggregateError ? (current.errors[0] as unknown) : undefined);
  }
  return lines.join('\n');
}

function asJson(fields: object): string {
  try {
    return JSON.stringify(fields, (_, value: unknown) => {
      if (typeof value === 'bigint') return value.toString();
      return value instanceof Error ? `${value.name}: ${value.message}` : value;
    });
  } catch {
    return '{}';
  }
}
