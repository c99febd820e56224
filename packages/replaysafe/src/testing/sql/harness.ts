import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { hasCode, type ErrorCode } from '../../errors.js';
import { pause, systemClock } from '../../ports/clock.js';
import type { SqlExecutor, SqlPort, SqlTransaction } from '../../ports/sql.js';

/** What an adapter's author provides so that {@link sqlConformance} can be run for it. */
export interface SqlHarness<Tx> {
  /** The port under test, on a database that has {@link SQL_CONFORMANCE_TABLES}, with at least 2 and at most 4 connections. */
  readonly sql: SqlPort<Tx>;
  /** Another session of the same database, not through the port under test. */
  readonly observer: SqlExecutor;
  /** Runs one statement on a handle, as the application's own code would. */
  readonly run: (handle: Tx, text: string) => Promise<unknown>;
  /** A further port on the same database. */
  readonly open: (options: OpenOptions) => Promise<OpenedPort<Tx>>;
  /** A further port whose connections pass a proxy. */
  readonly openThroughProxy: () => Promise<OpenedPort<Tx> & SqlFaults>;
  /** A handle of the application's own, idle at first. */
  readonly ownHandle: () => Promise<OwnHandle<Tx>>;
  /** Handles that must be refused as no transaction: the pool, and things of other drivers. */
  readonly noHandles: readonly unknown[];
  /**
   * Starts a process that opens a transaction through the port, with a statement time-out of a minute, and runs the text
   * in it.
   */
  readonly spawnOwner: (text: string) => Promise<{ kill(): void; stop(): Promise<void> }>;
  /** A port on a server that waits for a synchronous standby that never comes; left out, its case does not run. */
  readonly openWithoutStandby?: () => Promise<OpenedPort<Tx> & { readonly observer: SqlExecutor }>;
}

export interface OpenOptions {
  /** Session defaults, e.g. `{ default_transaction_isolation: 'serializable' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Most connections. */
  readonly max?: number;
  /** Nothing listens at the server's address. */
  readonly unreachable?: boolean;
}

export interface OpenedPort<Tx> {
  readonly sql: SqlPort<Tx>;
  readonly close: () => Promise<void>;
}

export interface SqlFaults {
  /** Lets requests through and holds the answers back. */
  readonly withholdReplies: () => void;
  /** Cuts all connections. */
  readonly cut: () => void;
}

export interface OwnHandle<Tx> {
  readonly handle: Tx;
  /** Sends the text; resolves with its answer. */
  readonly run: (text: string) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

/** Tables that the suite writes to. */
export const SQL_CONFORMANCE_TABLES = `
  create table conformance_row (id text primary key, note text);
  create table conformance_child (id text primary key references conformance_row deferrable initially deferred)`;

export const INSERT = 'insert into conformance_row (id) values ($1)';

/** An id of this case alone; safe inside a literal. */
export const freshId = (): string => randomUUID();

export const insertOf = (id: string): string => `insert into conformance_row (id) values ('${id}')`;

/** Inserts a row twice and swallows the violation, as careless code does. */
export async function swallowViolation(tx: SqlTransaction, id: string): Promise<void> {
  await tx.query(INSERT, [id]);
  await tx.query(INSERT, [id]).catch(() => undefined);
}

export async function exists(observer: SqlExecutor, id: string): Promise<boolean> {
  return (await observer.query('select from conformance_row where id = $1', [id])).rowCount === 1;
}

/** Rejects with one of our codes, and with no other. */
export async function rejectsWith(work: Promise<unknown>, code: ErrorCode): Promise<unknown> {
  let thrown: unknown;
  try {
    await work;
  } catch (error) {
    thrown = error;
  }
  assert.ok(thrown !== undefined, `resolved instead of ${code}`);
  assert.ok(hasCode(thrown, code), `expected ${code}, got ${thrown instanceof Error ? thrown.message : typeof thrown}`);
  return thrown;
}

/** Asks again until it is so; the bound is for hangs, not a measure of speed. */
export async function eventually(what: string, check: () => Promise<boolean>, withinMs = 25_000): Promise<void> {
  const until = systemClock.monotonicMs() + withinMs;
  while (!(await check())) {
    assert.ok(systemClock.monotonicMs() < until, `not within ${withinMs} ms: ${what}`);
    await pause(systemClock, 10);
  }
}

/** Waits until a statement whose text contains the marker runs, and returns its server process. */
export async function running(observer: SqlExecutor, marker: string): Promise<number> {
  let pid = 0;
  await eventually(`a statement with ${marker} runs`, async () => {
    const { rows } = await observer.query<{ pid: number }>(
      `select pid from pg_stat_activity where query like '%' || $1 || '%' and pid <> pg_backend_pid() and state = 'active'`,
      [marker],
    );
    pid = rows[0]?.pid ?? 0;
    return pid !== 0;
  });
  return pid;
}

/** Opens something for the length of the work. */
export async function using<Opened extends { close(): Promise<void> }>(
  opening: Promise<Opened>,
  work: (opened: Opened) => Promise<void>,
): Promise<void> {
  const opened = await opening;
  try {
    await work(opened);
  } finally {
    await opened.close();
  }
}
