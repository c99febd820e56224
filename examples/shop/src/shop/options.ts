import { parseArgs } from 'node:util';

export interface ShopProgramOptions {
  readonly orders: number;
  readonly billing: number;
  readonly json: boolean;
}

export const USAGE = `npm run shop -- [--orders 1] [--billing 1] [--json]

  --orders n    instances of orders
  --billing n   instances of billing
  --json        one JSON object with the addresses, when all is ready`;

/** @throws Error with a sentence for the user */
export function parseShopOptions(args: readonly string[]): ShopProgramOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      orders: { type: 'string' },
      billing: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  return {
    orders: instances('--orders', values.orders),
    billing: instances('--billing', values.billing),
    json: values.json,
  };
}

function instances(name: string, given: string | undefined): number {
  const value = given === undefined ? 1 : Number(given);
  if (given === '' || !Number.isInteger(value) || value < 1 || value > 20) {
    throw new Error(`${name} must be a whole number from 1 to 20, not "${given ?? ''}"`);
  }
  return value;
}
