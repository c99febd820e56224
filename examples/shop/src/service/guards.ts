/**
 * The protections that can be switched off, one by one, to see what they are for. Each is a choice of the application;
 * the library has no switch for any of them, so a service without a guard is written by hand beside the safe one.
 */
export const GUARDS = {
  'key-per-try': 'the ordering client makes a new Idempotency-Key for every try',
  'no-dedup-row': 'billing keeps no processed_event row beside its charge',
  'offset-first': 'billing commits the offset before the effect',
  'no-outbox': 'orders publishes to Kafka after its commit, with no row to remember it by',
  'provider-without-keys': 'the provider ignores the Idempotency-Key',
} as const;

export type Guard = keyof typeof GUARDS;

export function isGuard(name: string): name is Guard {
  return Object.hasOwn(GUARDS, name);
}

/** Reads `SHOP_UNSAFE`: names of guards that are switched off, parted by commas. */
export function guardsOff(text: string | undefined): ReadonlySet<Guard> {
  const names = (text ?? '').split(',').filter((name) => name !== '');
  for (const name of names) {
    if (!isGuard(name)) throw new Error(`SHOP_UNSAFE: no guard is called "${name}"`);
  }
  return new Set(names as Guard[]);
}
