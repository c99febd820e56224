import { hasCode, ReplaysafeError } from '../../errors.js';
import { isInfrastructureState, sqlState, type SqlTransaction } from '../../ports/sql.js';
import { PgTransaction } from './pg-handle.js';
import { checkOut, CUT, lastResult, toResult, unlessCut, type Session } from './pg-session.js';
import type { PgClient, PgNotice, RawPool } from './pg-types.js';
import { beginText, commitText, refusedCommit, ROLLBACK, type BeginSettings } from './transaction-sql.js';

export interface TransactionPlan extends BeginSettings {
  readonly deadline: AbortSignal | undefined;
  readonly verify: { readonly text: string; readonly params: readonly unknown[] } | undefined;
}

/** What a pool has learned about its server. */
export interface ServerSupport {
  connectionCheck: boolean;
}

/** Opens, runs, verifies and commits one transaction; see `SqlPort.transaction`. */
export async function runTransaction<Client extends PgClient, T>(
  pool: RawPool,
  support: ServerSupport,
  fn: (tx: SqlTransaction<Client>) => Promise<T>,
  plan: TransactionPlan,
): Promise<T> {
  const { deadline } = plan;
  if (deadline?.aborted) throw cutAt(deadline);
  const session = await checkOut(pool, deadline);
  const drop = (): void => {
    session.drop();
  };
  deadline?.addEventListener('abort', drop, { once: true });
  try {
    if (deadline?.aborted) session.drop();
    const xid = await begin(session, support, plan);
    const tx = new PgTransaction<Client>(session, xid);
    const work = await unlessCut(settled(fn, tx), deadline);
    // The handle is dead before COMMIT or ROLLBACK is sent: nothing can slip in behind them (P5).
    const complaint = complaintAbout(work, tx, tx.end());
    if (complaint !== undefined) return await rollBack(session, complaint.error, deadline);
    await verify(session, plan, tx);
    await commit(session, tx, deadline);
    return (work as { value: T }).value;
  } finally {
    deadline?.removeEventListener('abort', drop);
    session.giveBack();
  }
}

async function settled<Client extends PgClient, T>(
  fn: (tx: SqlTransaction<Client>) => Promise<T>,
  tx: SqlTransaction<Client>,
): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await fn(tx) };
  } catch (error) {
    return { error };
  }
}

async function begin(session: Session, support: ServerSupport, plan: TransactionPlan): Promise<string> {
  const connectionCheckMs = support.connectionCheck ? plan.connectionCheckMs : 0;
  const notices = (session.notices = [] as PgNotice[]);
  try {
    const { rows } = lastResult(await session.send(beginText({ ...plan, connectionCheckMs })));
    if (!notices.some((notice) => notice.code === '25001')) return (rows as { xid: string }[])[0]?.xid ?? '';
  } catch (error) {
    const unsupported = sqlState(error) === '22023' || sqlState(error) === '42704';
    if (connectionCheckMs > 0 && unsupported) {
      // Before PostgreSQL 14 there is no such setting, and some platforms (macOS) refuse it: asked once per pool.
      support.connectionCheck = false;
      await session.send(ROLLBACK);
      return await begin(session, support, plan);
    }
    const unavailable = isInfrastructureState(sqlState(error));
    const reason = unavailable ? new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause: error }) : error;
    return await rollBack(session, reason, plan.deadline);
  } finally {
    session.notices = undefined;
  }
  // BEGIN inside a transaction is a mere warning; drivers that tell the status never come here.
  session.drop();
  throw new ReplaysafeError('RS_SQL_UNAVAILABLE', { detail: 'the pool handed out a client that is in a transaction' });
}

function complaintAbout<Client extends PgClient>(
  work: { readonly value: unknown } | { readonly error: unknown } | typeof CUT,
  tx: PgTransaction<Client>,
  dangling: number,
): { readonly error: unknown } | undefined {
  if (work === CUT) return { error: undefined };
  if ('error' in work) return work;
  if (tx.lost !== undefined) return { error: tx.lost };
  if (tx.failure !== undefined) return { error: new ReplaysafeError('RS_TX_ABORTED', { cause: tx.failure }) };
  if (dangling > 0) {
    return { error: new ReplaysafeError('RS_TX_DANGLING', { detail: `${String(dangling)} under way` }) };
  }
  return undefined;
}

async function verify<Client extends PgClient>(
  session: Session,
  plan: TransactionPlan,
  tx: PgTransaction<Client>,
): Promise<void> {
  if (plan.verify === undefined) return;
  try {
    const { rows } = toResult(await session.send(plan.verify.text, [...plan.verify.params]));
    if (rows.length === 1) return;
  } catch (error) {
    await rollBack(session, aborted(error, tx), plan.deadline);
  }
  await rollBack(session, new ReplaysafeError('RS_TX_LOST', { detail: 'its own rows are gone' }), plan.deadline);
}

/** Rolls back and throws: what the callback threw, unless the connection itself was the reason. */
async function rollBack(session: Session, error: unknown, deadline: AbortSignal | undefined): Promise<never> {
  if (deadline?.aborted) {
    session.drop();
    throw cutAt(deadline, error);
  }
  if (session.lost === undefined) {
    try {
      await session.send(ROLLBACK);
    } catch (cause) {
      session.lost ??= cause;
    }
  }
  if (session.lost !== undefined) {
    session.drop();
    if (hasCode(error, 'RS_SQL_UNAVAILABLE')) throw error;
    const cause = sqlState(error) === undefined ? session.lost : error;
    throw new ReplaysafeError('RS_SQL_UNAVAILABLE', {
      cause,
      detail: 'the connection was lost; nothing was committed',
    });
  }
  throw error;
}

/** COMMIT counts when the server answers `COMMIT`. It is never cancelled; without an answer the outcome is unknown (P2). */
async function commit<Client extends PgClient>(
  session: Session,
  tx: PgTransaction<Client>,
  deadline: AbortSignal | undefined,
): Promise<void> {
  if (session.lost !== undefined) await rollBack(session, session.lost, deadline);
  const notices = (session.notices = [] as PgNotice[]);
  let tag: string | undefined;
  try {
    tag = lastResult(await session.send(commitText(tx.xid))).command;
  } catch (error) {
    await failedCommit(session, error, tx);
  }
  if (tag === 'ROLLBACK') throw new ReplaysafeError('RS_TX_ABORTED', { cause: tx.failure });
  if (tag !== 'COMMIT')
    throw new ReplaysafeError('RS_TX_OUTCOME_UNKNOWN', { detail: `the server answered ${String(tag)}` });
  if (notices.some((notice) => notice.routine === 'SyncRepWaitForLSN' || notice.file === 'syncrep.c')) {
    throw new ReplaysafeError('RS_TX_OUTCOME_UNKNOWN', {
      detail: 'committed here, but the wait for the synchronous standby was cancelled',
    });
  }
}

async function failedCommit<Client extends PgClient>(
  session: Session,
  error: unknown,
  tx: PgTransaction<Client>,
): Promise<never> {
  try {
    // An error that leaves the session usable is the server's refusal: rolled back. A fatal one may come after the commit.
    if (session.lost !== undefined || sqlState(error) === undefined) throw error;
    await session.send(ROLLBACK);
  } catch {
    session.drop();
    throw new ReplaysafeError('RS_TX_OUTCOME_UNKNOWN', { cause: error });
  }
  if (refusedCommit(error)) {
    session.drop();
    throw new ReplaysafeError('RS_TX_LOST', { detail: 'the callback ended the transaction' });
  }
  throw aborted(error, tx);
}

/** 25P02 tells only that something failed before; what it was, the transaction has on record. */
function aborted<Client extends PgClient>(error: unknown, tx: PgTransaction<Client>): unknown {
  return sqlState(error) === '25P02' ? new ReplaysafeError('RS_TX_ABORTED', { cause: tx.failure ?? error }) : error;
}

function cutAt(deadline: AbortSignal, error?: unknown): ReplaysafeError {
  return new ReplaysafeError('RS_TX_DEADLINE', { cause: error ?? deadline.reason });
}
