import type { Finding, Reconciliation } from 'replaysafe-crashkit';
import type { Guard } from '../service/guards.js';
import type { Books } from './books.js';
import type { Chaos } from './chaos.js';
import type { DemoOptions } from './options.js';
import type { OrderingClient } from './ordering-client.js';

/** What `--json` prints. */
export interface DemoResult {
  /** Orders that the client was told are accepted. */
  readonly accepted: number;
  /** Rows of the outbox that are marked as published. */
  readonly published: number;
  /** Charges that billing has recorded. */
  readonly charged: number;
  /** Charges that the provider has made. */
  readonly providerCharges: number;
  /** Receipts that went out, each a task that billing wrote with its charge. */
  readonly receipts: number;
  readonly lost: number;
  readonly double: number;
  readonly wrongAmount: number;
  readonly kills: number;
  readonly sigkills: number;
  readonly clientRetries: number;
  /**
   * `http`: repeated orders that the client saw answered from the store. `consumer`: deliveries that billing dropped.
   * `provider`: repeated charges that the provider answered from its store. The last two are rows in their databases.
   */
  readonly duplicatesAbsorbed: { readonly http: number; readonly consumer: number; readonly provider: number };
  /** The guard that the run was asked to switch off, or null. */
  readonly unsafe: Guard | null;
  /** All guards that were off. */
  readonly guardsOff: readonly Guard[];
  /** How long orders were placed. */
  readonly seconds: number;
  readonly seed: number;
  /** From the first order to this ledger. */
  readonly elapsedMs: number;
  /** Longest time between two charges. */
  readonly longestPauseMs: number;
  /** Orders whose client had no answer when the run gave up on it. */
  readonly unanswered: number;
  /** Orders that were refused for good. There should be none. */
  readonly refused: number;
  /** Events that went to the dead letter, or that the outbox has given up on. */
  readonly dead: number;
  /** Whether nothing was under way any more when the ledger was taken. */
  readonly drained: boolean;
}

export interface ResultParts {
  readonly options: DemoOptions;
  readonly guardsOff: readonly Guard[];
  readonly client: OrderingClient;
  readonly chaos: Chaos;
  readonly books: Books;
  readonly reconciliation: Reconciliation;
  readonly drained: boolean;
  readonly elapsedMs: number;
}

export function demoResult(parts: ResultParts): DemoResult {
  const { options, guardsOff, client, chaos, books, reconciliation, drained } = parts;
  const { accepted } = client;
  return {
    accepted,
    published: books.events.published,
    charged: books.billing.length,
    providerCharges: books.provider.length,
    receipts: books.receipts?.length ?? 0,
    lost: reconciliation.lost,
    double: reconciliation.double,
    wrongAmount: reconciliation.wrongAmount,
    kills: chaos.kills,
    sigkills: chaos.sigkills,
    clientRetries: client.retries,
    duplicatesAbsorbed: { http: client.replayed, ...books.absorbed },
    unsafe: options.unsafe ?? null,
    guardsOff,
    seconds: options.seconds,
    seed: options.seed,
    elapsedMs: parts.elapsedMs,
    longestPauseMs: books.longestGapMs,
    unanswered: client.intended.length - accepted - client.refusals.length,
    refused: client.refusals.length,
    dead: books.events.dead,
    drained,
  };
}

/** Only these three decide about the exit status. */
export function isSafe(result: DemoResult): boolean {
  return result.lost === 0 && result.double === 0 && result.wrongAmount === 0;
}

const MOST_FINDINGS = 5;

/** The ledger for people. */
export function renderLedger(result: DemoResult, findings: readonly Finding[]): string {
  const absorbed = result.duplicatesAbsorbed;
  const row = (name: string, value: number | string, note = ''): string =>
    `  ${name.padEnd(26)}${String(value).padStart(8)}${note && `   ${note}`}`;
  const lines = [
    'Ledger, from the three databases and what the client was answered',
    '',
    row(
      'orders accepted',
      result.accepted,
      result.unanswered > 0 ? `${String(result.unanswered)} without an answer` : '',
    ),
    row('events published', result.published, result.dead > 0 ? `${String(result.dead)} given up on` : ''),
    row('charges recorded', result.charged),
    row('charges at the provider', result.providerCharges),
    row('receipts sent', result.receipts),
    '',
    row('lost', result.lost),
    row('double', result.double),
    row('wrong amount', result.wrongAmount),
    '',
    row(
      'processes killed',
      result.kills,
      `${String(result.sigkills)} by SIGKILL, ${String(result.kills - result.sigkills)} by SIGTERM`,
    ),
    row('tries repeated by client', result.clientRetries),
    row(
      'duplicates absorbed',
      absorbed.http + absorbed.consumer + absorbed.provider,
      `${String(absorbed.http)} by orders (HTTP), ${String(absorbed.consumer)} by billing (consumer), ${String(absorbed.provider)} by the provider`,
    ),
    row('longest pause in billing', `${(result.longestPauseMs / 1_000).toFixed(1)} s`),
    row('ledger taken after', `${(result.elapsedMs / 1_000).toFixed(1)} s`),
    '',
    ...findings.slice(0, MOST_FINDINGS).map(({ kind, ref, book, detail }) => `  ${kind}: ${ref} in ${book}: ${detail}`),
    ...(findings.length > MOST_FINDINGS ? [`  … and ${String(findings.length - MOST_FINDINGS)} more`] : []),
    ...(findings.length > 0 ? [''] : []),
    verdict(result),
  ];
  return lines.join('\n');
}

function verdict(result: DemoResult): string {
  if (!result.drained) return 'The pipeline was not empty in time, so what is called lost may only be late.';
  if (isSafe(result)) {
    return result.unsafe === null
      ? 'Nothing lost, nothing double, every amount right.'
      : `No damage showed with ${result.guardsOff.join(' and ')}. That is luck: run it longer.`;
  }
  return result.unsafe === null
    ? 'DAMAGE. This must not happen with all guards on; please report the seed.'
    : `Damage, as it has to be with ${result.guardsOff.join(' and ')}.`;
}
