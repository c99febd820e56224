import { parseArgs } from 'node:util';
import { GUARDS, isGuard, type Guard } from '../service/guards.js';

export interface DemoOptions {
  /** How long orders are placed and processes killed. Default 45, with a guard off 14. */
  readonly seconds: number;
  readonly seed: number;
  readonly json: boolean;
  readonly unsafe: Guard | undefined;
}

export const USAGE = `npm run demo -- [--seconds 45] [--seed 1] [--json] [--unsafe=<guard>]

  --seconds n        how long orders are placed and processes are killed
  --seed n           the same kills and faults again, as far as the machine allows
  --json             the ledger as one JSON object, the last line of stdout
  --unsafe=<guard>   switch one protection off; the ledger must then show the damage:
${Object.entries(GUARDS)
  .map(([guard, meaning]) => `    ${guard.padEnd(23)}${meaning}`)
  .join('\n')}`;

/** @throws Error with a sentence for the user */
export function parseDemoOptions(args: readonly string[], randomSeed: () => number): DemoOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seconds: { type: 'string' },
      seed: { type: 'string' },
      json: { type: 'boolean', default: false },
      unsafe: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  if (values.unsafe !== undefined && !isGuard(values.unsafe)) {
    throw new Error(`--unsafe must be one of ${Object.keys(GUARDS).join(', ')}, not "${values.unsafe}"`);
  }
  return {
    seconds: whole('--seconds', values.seconds, values.unsafe === undefined ? 45 : 14, 1, 86_400),
    seed: values.seed === undefined ? randomSeed() : whole('--seed', values.seed, 0, 0, 4_294_967_295),
    json: values.json,
    unsafe: values.unsafe,
  };
}

function whole(name: string, given: string | undefined, fallback: number, min: number, max: number): number {
  const value = given === undefined ? fallback : Number(given);
  if (given === '' || !Number.isInteger(value) || value < min || value > max) {
    throw new Error(`${name} must be a whole number from ${String(min)} to ${String(max)}, not "${given ?? ''}"`);
  }
  return value;
}
