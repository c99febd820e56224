/** What each transaction says aloud when it begins, in milliseconds. */
export interface BeginSettings {
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** 0 leaves `client_connection_check_interval` alone, for servers that do not have it. */
  readonly connectionCheckMs: number;
}

const IS_SAME = 1;
/** Stands in the error of a server in whatever language its messages are. */
const ANOTHER_TRANSACTION = 'replaysafe: another transaction';

/**
 * One simple-protocol text, so that opening a transaction costs one round trip. READ COMMITTED is said aloud because lock,
 * claim and read are separate statements that must each see what others have committed (P4). The settings are local,
 * so that they reach the right server session behind a transaction pooler too (P3).
 */
export function beginText(settings: BeginSettings): string {
  const local = [
    `set local statement_timeout = ${settings.statementTimeoutMs}`,
    `set local lock_timeout = ${settings.lockTimeoutMs}`,
    `set local idle_in_transaction_session_timeout = ${settings.idleTimeoutMs}`,
  ];
  if (settings.connectionCheckMs > 0) {
    local.push(`set local client_connection_check_interval = ${settings.connectionCheckMs}`);
  }
  return `/* replaysafe:tx.begin */ begin isolation level read committed; ${local.join('; ')};
select pg_current_xact_id()::text as xid,
  case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end as durable`;
}

/**
 * The check and COMMIT in one simple-protocol text: when this is not the transaction we opened, or when it has failed, the
 * first statement raises an error and the server skips the rest, so that COMMIT never ends a stranger's transaction (P1).
 */
export function commitText(xid: string): string {
  if (!/^\d+$/.test(xid)) throw new TypeError('a transaction id is a number');
  return `/* replaysafe:tx.commit */ select (case when pg_current_xact_id_if_assigned()::text = '${xid}'
  then '${String(IS_SAME)}' else '${ANOTHER_TRANSACTION}' end)::int as same; commit`;
}

/** Whether an error is the refusal of {@link commitText}, not one of a deferred constraint. */
export function refusedCommit(error: unknown): boolean {
  return error instanceof Error && error.message.includes(ANOTHER_TRANSACTION);
}

export const ROLLBACK = '/* replaysafe:tx.rollback */ rollback';
