import type { Logger } from 'replaysafe';

const LEVELS = { debug: 20, info: 30, warn: 40, error: 50 } as const;
type Level = keyof typeof LEVELS;

/** One JSON object a line on stdout, in pino's shape. pino itself would do as well: the library asks for this shape. */
export function createLogger(name: string, lowest: Level = 'info'): Logger {
  const write =
    (level: Level) =>
    (fields: object, message: string): void => {
      if (LEVELS[level] < LEVELS[lowest]) return;
      const line = { level: LEVELS[level], time: Date.now(), pid: process.pid, name, ...fields, msg: message };
      process.stdout.write(JSON.stringify(line, readable) + '\n');
    };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

function readable(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  if (!(value instanceof Error)) return value;
  const { name, message, stack, cause } = value;
  return { type: name, message, stack, ...('code' in value ? { code: value.code } : {}), ...(cause ? { cause } : {}) };
}
