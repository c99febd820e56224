import { ReplaysafeError } from './errors.js';

/** How one option is read: from what the caller gave (perhaps nothing) to the value used, or a complaint. */
export interface OptionReader<Out> {
  read(given: unknown): Out;
}

export type OptionTable = Readonly<Record<string, OptionReader<unknown>>>;
export type ParsedOptions<Table extends OptionTable> = {
  readonly [Name in keyof Table]: Table[Name] extends OptionReader<infer Out> ? Out : never;
};

class Complaint extends Error {
  readonly code: 'RS_OPTION_REQUIRED' | 'RS_OPTION_INVALID';

  constructor(code: Complaint['code'], text: string) {
    super(text);
    this.code = code;
  }
}

/**
 * Reads a caller's options once, at the door: defaults, bounds, and a refusal of names that do not exist.
 *
 * @throws RS_OPTION_UNKNOWN with the nearest name, RS_OPTION_REQUIRED, RS_OPTION_INVALID
 */
export function parseOptions<Table extends OptionTable>(
  door: string,
  table: Table,
  given: object | undefined,
): ParsedOptions<Table> {
  if (
    given !== undefined &&
    (typeof (given as unknown) !== 'object' || (given as unknown) === null || Array.isArray(given))
  ) {
    throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `${door}: the options must be an object` });
  }
  const input = (given ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(input)) {
    if (!Object.hasOwn(table, name)) throw unknownOption(door, name, Object.keys(table));
  }
  const parsed: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(table)) {
    parsed[name] = readOption(door, name, option, input[name]);
  }
  return Object.freeze(parsed) as ParsedOptions<Table>;
}

function readOption(door: string, name: string, option: OptionReader<unknown>, given: unknown): unknown {
  try {
    return option.read(given);
  } catch (error) {
    if (error instanceof Complaint)
      throw new ReplaysafeError(error.code, { detail: `${door}: ${name} ${error.message}` });
    throw error;
  }
}

/** A whole number, e.g. of rows or milliseconds. `min` defaults to 0, `max` to 2^31 - 1, the longest a timer can wait. */
export function integer(bounds: { default?: number; min?: number; max?: number }): OptionReader<number> {
  const min = bounds.min ?? 0;
  const max = bounds.max ?? 2_147_483_647;
  return reader(bounds.default, (given) => {
    if (typeof given !== 'number' || !Number.isInteger(given) || given < min || given > max) {
      throw invalid(`must be a whole number from ${String(min)} to ${String(max)}`, given);
    }
    return given;
  });
}

export function boolean(fallback: boolean): OptionReader<boolean> {
  return reader(fallback, (given) => {
    if (typeof given !== 'boolean') throw invalid('must be true or false', given);
    return given;
  });
}

/** A string that is not empty. */
export function text(options: { default?: string; pattern?: RegExp } = {}): OptionReader<string> {
  return reader(options.default, (given) => {
    if (typeof given !== 'string' || given === '') throw invalid('must be a string that is not empty', given);
    if (options.pattern && !options.pattern.test(given)) throw invalid(`must match ${String(options.pattern)}`, given);
    return given;
  });
}

/** The schema that holds the library's tables. Lower case, so that a name means the same quoted and unquoted. */
export function schemaName(): OptionReader<string> {
  return text({ default: 'replaysafe', pattern: /^[a-z_][a-z0-9_]{0,62}$/ });
}

export function oneOf<const Choice extends string>(
  choices: readonly Choice[],
  fallback?: NoInfer<Choice>,
): OptionReader<Choice> {
  return reader(fallback, (given) => {
    if (!(choices as readonly unknown[]).includes(given)) throw invalid(`must be one of ${choices.join(', ')}`, given);
    return given as Choice;
  });
}

/**
 * An object or function that the caller hands over, checked for the methods that are going to be called. `hint` may say
 * what to do about an object that lacks some of them.
 */
export function port<Shape extends object>(
  methods: readonly (keyof Shape & string)[],
  fallback?: Shape,
  hint?: (given: object) => string | undefined,
): OptionReader<Shape> {
  return reader(fallback, (given) => {
    const candidate = given as Record<string, unknown> | null;
    const missing =
      candidate === null || typeof candidate !== 'object'
        ? methods
        : methods.filter((method) => typeof candidate[method] !== 'function');
    if (missing.length > 0 || candidate === null || typeof candidate !== 'object') {
      const advice = candidate !== null && typeof candidate === 'object' ? hint?.(candidate) : undefined;
      const rule = `must be an object with ${missing.map((method) => `${method}()`).join(', ')}`;
      throw invalid(advice === undefined ? rule : `${rule} (${advice})`, given);
    }
    return given as Shape;
  });
}

export function callback<Fn extends (...args: never[]) => unknown>(fallback?: Fn): OptionReader<Fn> {
  return reader(fallback, (given) => {
    if (typeof given !== 'function') throw invalid('must be a function', given);
    return given as Fn;
  });
}

/** Any reader, with `undefined` where the caller gave nothing. */
export function optional<Out>(option: OptionReader<Out>): OptionReader<Out | undefined> {
  return { read: (given) => (given === undefined ? undefined : option.read(given)) };
}

/** A reader of one's own: `accepts` says what is wrong, or nothing. */
export function custom<Out>(accepts: (given: unknown) => string | undefined, fallback?: Out): OptionReader<Out> {
  return reader(fallback, (given) => {
    const complaint = accepts(given);
    if (complaint !== undefined) throw invalid(complaint, given);
    return given as Out;
  });
}

function reader<Out>(fallback: Out | undefined, read: (given: unknown) => Out): OptionReader<Out> {
  return {
    read: (given) => {
      if (given !== undefined) return read(given);
      if (fallback === undefined) throw new Complaint('RS_OPTION_REQUIRED', 'is required');
      return fallback;
    },
  };
}

function invalid(rule: string, given: unknown): Complaint {
  // Only scalars are shown: an object may hold a password.
  const shown =
    typeof given === 'string'
      ? JSON.stringify(given)
      : given === null || typeof given !== 'object'
        ? String(given)
        : 'an object';
  return new Complaint('RS_OPTION_INVALID', `${rule}, not ${shown}`);
}

function unknownOption(door: string, name: string, known: readonly string[]): ReplaysafeError {
  const nearest = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0];
  const hint =
    nearest && nearest.distance <= Math.max(2, Math.floor(name.length / 3))
      ? `did you mean "${nearest.candidate}"?`
      : `known options: ${known.join(', ')}`;
  return new ReplaysafeError('RS_OPTION_UNKNOWN', { detail: `${door}: "${name}"; ${hint}` });
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substituted = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substituted, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
