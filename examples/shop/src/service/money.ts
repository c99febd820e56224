/** An amount in minor units: cents, not euros. */
export interface Money {
  readonly amountMinor: number;
  readonly currency: string;
}

/** Fits PostgreSQL's `integer`. */
const LARGEST_AMOUNT = 1_000_000_000;

/** What is wrong with the fields of an amount, if anything. */
export function moneyComplaint(fields: Record<string, unknown>): string | undefined {
  const { amountMinor, currency } = fields;
  if (!Number.isInteger(amountMinor) || (amountMinor as number) < 1 || (amountMinor as number) > LARGEST_AMOUNT) {
    return `amountMinor must be a whole number of minor units from 1 to ${String(LARGEST_AMOUNT)}`;
  }
  if (typeof currency !== 'string' || !/^[A-Z]{3}$/.test(currency)) return 'currency must be three capital letters';
  return undefined;
}

/** What is wrong with a name or id, if anything. */
export function idComplaint(fields: Record<string, unknown>, name: string): string | undefined {
  const value = fields[name];
  return typeof value === 'string' && /^[\x21-\x7e]{1,100}$/.test(value)
    ? undefined
    : `${name} must be 1 to 100 printable ASCII characters without spaces`;
}

export function asFields(body: unknown): Record<string, unknown> | undefined {
  return typeof body === 'object' && body !== null && !Array.isArray(body)
    ? (body as Record<string, unknown>)
    : undefined;
}
