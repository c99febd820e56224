import { ReplaysafeError } from '../../errors.js';
import { custom, integer, optional, parseOptions, port } from '../../options.js';
import { silentLogger, type Logger } from '../../ports/logger.js';
import {
  isInfrastructureState,
  sqlState,
  type SqlExecutor,
  type SqlPort,
  type TransactionOptions,
} from '../../ports/sql.js';
import { transactionOf } from './pg-handle.js';
import { checkOut, send, toResult } from './pg-session.js';
import { runTransaction, type ServerSupport } from './pg-transaction.js';
import type { PgClient, PgClientOf, PgPool, RawClient, RawPool } from './pg-types.js';

export type { PgClient, PgPool, PgResult } from './pg-types.js';

export interface FromPgOptions {
  /**
   * How often the server looks, while it runs a statement of ours, whether we are still there, in milliseconds. Default 1,000;
   * 0 leaves the server's setting alone. PostgreSQL before 14 and some platforms cannot; they are asked once.
   */
  readonly connectionCheckMs?: number;
  /** Hears of idle connections that were lost. Default: silent. */
  readonly logger?: Logger;
}

const PG_OPTIONS = {
  connectionCheckMs: integer({ default: 1_000 }),
  logger: port<Logger>(['info'], silentLogger),
};

const TRANSACTION_OPTIONS = {
  statementTimeoutMs: integer({ default: 10_000, min: 1 }),
  lockTimeoutMs: integer({ default: 5_000, min: 1 }),
  idleTimeoutMs: integer({ default: 15_000, min: 1 }),
  deadline: optional(
    custom<AbortSignal>((given) =>
      typeof given === 'object' && given !== null && 'aborted' in given ? undefined : 'must be an AbortSignal',
    ),
  ),
  verify: optional(
    custom<NonNullable<TransactionOptions['verify']>>((given) =>
      typeof given === 'object' && given !== null ? undefined : 'must be a statement',
    ),
  ),
};

/**
 * The SQL port on a `pg` pool (8.x; pure JavaScript or native, with or without `pipeline: true`). The pool stays the
 * caller's, who ends it last.
 *
 * The handle of a transaction is the pg client itself behind a proxy that dies with the transaction. `join` needs a
 * client that tells its transaction status, which pg does since 8.21.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function fromPg<Pool extends PgPool>(pool: Pool, options?: FromPgOptions): SqlPort<PgClientOf<Pool>> {
  const { connectionCheckMs, logger } = parseOptions('fromPg', PG_OPTIONS, options);
  const raw = pool as unknown as RawPool;
  if (typeof raw.connect !== 'function') {
    throw new ReplaysafeError('RS_OPTION_INVALID', { detail: 'fromPg: needs a pool' });
  }
  const support: ServerSupport = { connectionCheck: connectionCheckMs > 0 };
  // An idle connection that dies is replaced by the pool; without any listener it would end the process.
  if (raw.listenerCount?.('error') === 0) {
    raw.on?.('error', (err) => {
      logger.info({ err }, 'an idle database connection was lost');
    });
  }
  return {
    query: async (text, params) => {
      const session = await checkOut(raw);
      try {
        return toResult(await session.send(text, params && [...params]));
      } catch (cause) {
        if (session.lost === undefined && !isInfrastructureState(sqlState(cause))) throw cause;
        throw new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause });
      } finally {
        session.giveBack();
      }
    },
    transaction: async (fn, given) => {
      const parsed = parseOptions('transaction', TRANSACTION_OPTIONS, given);
      return runTransaction(raw, support, fn, { ...parsed, connectionCheckMs });
    },
    join,
  };
}

function join(handle: PgClient): SqlExecutor {
  const own = typeof handle === 'object' ? transactionOf(handle) : undefined;
  if (own !== undefined) return own;
  const client = openClient(handle);
  return { query: async (text, params) => toResult(await send(client, text, params && [...params])) };
}

function openClient(handle: unknown): RawClient {
  const candidate = handle as (RawClient & { readonly totalCount?: unknown }) | null | undefined;
  if (isPort(handle)) throw noTransaction('this is the SQL port, which opens transactions and is none');
  if (typeof candidate !== 'object' || candidate === null || typeof candidate.query !== 'function') {
    throw noTransaction('this is no pg client');
  }
  if (candidate.totalCount !== undefined) throw noTransaction('this is a pool; each of its statements commits alone');
  if (typeof candidate.getTransactionStatus !== 'function') {
    throw noTransaction('this client does not tell its transaction status; pg does since 8.21');
  }
  const status = candidate.getTransactionStatus();
  if (status !== 'T' && status !== 'E') throw noTransaction('no transaction is open on this client');
  return candidate;
}

function isPort(handle: unknown): boolean {
  const { query, transaction, join } = (handle ?? {}) as Readonly<Record<string, unknown>>;
  return [query, transaction, join].every((method) => typeof method === 'function');
}

const WHAT_TO_PASS =
  'pass `handle` of sql.transaction, `ctx.tx`, `request.idempotency.tx`, or a pg client inside BEGIN';

function noTransaction(detail: string): ReplaysafeError {
  return new ReplaysafeError('RS_OUTBOX_NO_TRANSACTION', { detail: `${detail}; ${WHAT_TO_PASS}` });
}
