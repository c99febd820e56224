import { randomBytes } from 'node:crypto';
import { ReplaysafeError } from '../errors.js';
import type { RelayModeName } from '../events.js';
import {
  custom,
  integer,
  oneOf,
  optional,
  parseOptions,
  port,
  schemaName,
  text,
  type OptionReader,
} from '../options.js';
import type { Publisher } from '../ports/broker.js';
import { systemClock, type Clock } from '../ports/clock.js';
import { silentLogger, type Logger } from '../ports/logger.js';
import { systemRandom, type Random } from '../ports/random.js';
import { poolHint, SQL_PORT_METHODS, type SqlPort } from '../ports/sql.js';
import { stopSignals, type StopSignals } from '../ports/stop.js';

export interface RelayOptions {
  readonly sql: SqlPort;
  readonly publisher: Publisher;
  /**
   * `single-phase` (default): one transaction claims, publishes and marks, and stays open while the broker is asked.
   * `two-phase`: claim and mark are transactions of their own, no connection is held in between; a claim of a relay that
   * died comes back with its lease. Both publish at least once, and receivers have to drop duplicates in both. They share
   * one schema and may run side by side.
   */
  readonly mode?: RelayModeName;
  /** Only `none` so far: events of one key may overtake each other when one fails or when several relays run. */
  readonly order?: 'none';
  /** Most events of one claim, and of one publish. Default 200. */
  readonly batchSize?: number;
  /** Two-phase: how long a claim lasts without being renewed. Default 30,000. Claims that ran out are pending again. */
  readonly leaseMs?: number;
  /** Longest wait between two polls while there is nothing to do. Default 1,000. */
  readonly pollIdleMs?: number;
  /** Shortest wait between two polls. Default 10. */
  readonly pollBusyMs?: number;
  /** Bound of one publish. Default 10,000. */
  readonly publishTimeoutMs?: number;
  /** Waits of an event that failed: exponential with full jitter. Default 200 and 60,000. */
  readonly backoff?: { readonly baseMs?: number; readonly capMs?: number };
  /** An event that failed this often is given up on (DEAD). Default 0: never, it is tried at the cap for ever. */
  readonly maxFailures?: number;
  /** How long an event waits for a topic that the broker does not know or forbids, before it is DEAD. Default 60,000. */
  readonly topicGraceMs?: number;
  /** Name in events and logs. Default `relay-` and eight random digits. */
  readonly name?: string;
  /** Schema of the library's tables. Default `replaysafe`. */
  readonly schema?: string;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
  /** The lifecycle's signals: the relay ends by itself when they say so. */
  readonly signals?: StopSignals;
}

const DEFAULT_BACKOFF = Object.freeze({ baseMs: 200, capMs: 60_000 });

const backoff: OptionReader<{ readonly baseMs: number; readonly capMs: number }> = {
  read: (given) => {
    const parsed = parseOptions(
      'createRelay: backoff',
      {
        baseMs: integer({ default: DEFAULT_BACKOFF.baseMs, min: 1 }),
        capMs: integer({ default: DEFAULT_BACKOFF.capMs, min: 1 }),
      },
      asObject.read(given ?? {}),
    );
    return parsed;
  },
};

const asObject = custom<object>((given) =>
  given !== null && typeof given === 'object' ? undefined : 'must be an object with baseMs and capMs',
);

const order = custom<'none'>(
  (given) =>
    given === 'none' ? undefined : `must be 'none': a relay that keeps the order of a key is not in this version`,
  'none',
);

export type ParsedRelayOptions = ReturnType<typeof parseRelayOptions>;

/** @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID */
export function parseRelayOptions(options: RelayOptions) {
  const parsed = parseOptions(
    'createRelay',
    {
      sql: port<SqlPort>(SQL_PORT_METHODS, undefined, poolHint),
      publisher: port<Publisher>(['publish']),
      mode: oneOf(['single-phase', 'two-phase'], 'single-phase'),
      order,
      batchSize: integer({ default: 200, min: 1, max: 10_000 }),
      leaseMs: integer({ default: 30_000, min: 100 }),
      pollIdleMs: integer({ default: 1_000, min: 1 }),
      pollBusyMs: integer({ default: 10, min: 1 }),
      publishTimeoutMs: integer({ default: 10_000, min: 1 }),
      backoff,
      maxFailures: integer({ default: 0 }),
      topicGraceMs: integer({ default: 60_000 }),
      name: text({ default: `relay-${randomBytes(4).toString('hex')}` }),
      schema: schemaName(),
      logger: port<Logger>(['debug', 'info', 'warn', 'error'], silentLogger),
      clock: port<Clock>(['now', 'monotonicMs', 'setTimer'], systemClock),
      random: port<Random>(['next'], systemRandom),
      signals: optional(stopSignals),
    },
    options,
  );
  if (parsed.pollBusyMs > parsed.pollIdleMs) {
    throw new ReplaysafeError('RS_OPTION_INVALID', {
      detail: `createRelay: pollBusyMs must not be longer than pollIdleMs, ${parsed.pollIdleMs}`,
    });
  }
  return parsed;
}
