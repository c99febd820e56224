import { ReplaysafeError } from '../../errors.js';
import type { SqlResult } from '../../ports/sql.js';
import type { PgAnswer, PgNotice, PgStatus, PgTaggedResult, RawClient, RawPool } from './pg-types.js';

/** Called in the driver's own tick, before a later answer of the same packet can change the transaction status. */
export type Observe = (error: unknown, answer: PgAnswer | undefined) => void;

/** Hands a statement to the driver in this tick. */
export function send(client: RawClient, config: unknown, values: unknown, observe?: Observe): Promise<PgAnswer> {
  return new Promise((resolve, reject) => {
    let settled = false;
    const settle = (error: unknown, answer?: PgAnswer): void => {
      // When a parameter cannot be serialised, pg reports the error and then the empty answer to its Sync.
      if (settled) return;
      settled = true;
      observe?.(error ?? undefined, answer);
      if (error === undefined || error === null) resolve(answer ?? []);
      else reject(error instanceof Error ? error : new Error('pg failed', { cause: error }));
    };
    try {
      // The driver writes its callback into the object it is given; the caller may use that object again.
      const own: unknown = typeof config === 'object' && config !== null ? Object.create(config) : config;
      client.query(own, values, settle);
    } catch (error) {
      settle(error);
    }
  });
}

/** The last of several results: what a caller of one statement means. */
export function lastResult(answer: PgAnswer): PgTaggedResult {
  const last = Array.isArray(answer) ? (answer as readonly PgTaggedResult[]).at(-1) : (answer as PgTaggedResult);
  return last ?? { rows: [], rowCount: 0 };
}

export function toResult<Row>(answer: PgAnswer): SqlResult<Row> {
  const { rows, rowCount } = lastResult(answer);
  return { rows: rows as Row[], rowCount: rowCount ?? 0 };
}

/** One checked-out client: given back or dropped exactly once. */
export class Session {
  readonly client: RawClient;
  /** Why the connection is gone, as soon as the driver knows. */
  lost: unknown;
  /** What the server remarks, while somebody listens. */
  notices: PgNotice[] | undefined;
  #held = true;

  constructor(client: RawClient) {
    this.client = client;
    // Without a listener, a connection that dies while it is checked out ends the process.
    client.on('error', this.#onError);
    client.on('end', this.#onEnd);
    client.on('notice', this.#onNotice);
  }

  get status(): PgStatus {
    return this.client.getTransactionStatus?.();
  }

  send(config: unknown, values?: unknown, observe?: Observe): Promise<PgAnswer> {
    return send(this.client, config, values, observe);
  }

  /** Back to the pool, if it is fit for the next owner. */
  giveBack(): void {
    const { status } = this;
    if (this.lost !== undefined || status === 'T' || status === 'E') this.drop();
    else this.#release(false);
  }

  /** Closes the connection now, whatever is under way on it. A COMMIT that has been sent is not cancelled by it. */
  drop(): void {
    this.lost ??= new Error('the connection was dropped');
    this.#release(true);
    // A pipelining client would wait for its open answers first.
    this.client.connection?.stream?.destroy?.();
  }

  #release(destroy: boolean): void {
    if (!this.#held) return;
    this.#held = false;
    // The pool listens from here on; ours go after that, so that there is no moment without a listener.
    this.client.release(destroy);
    this.client.removeListener('end', this.#onEnd);
    this.client.removeListener('notice', this.#onNotice);
    if (!destroy) this.client.removeListener('error', this.#onError);
  }

  readonly #onError = (error: unknown): void => {
    this.lost ??= error;
  };

  readonly #onEnd = (): void => {
    this.lost ??= new Error('the connection has ended');
  };

  readonly #onNotice = (notice: unknown): void => {
    this.notices?.push(notice as PgNotice);
  };
}

export const CUT = Symbol('cut');

/** Waits for the work or for the deadline, whichever comes first; work that goes on is not left unhandled. */
export async function unlessCut<T>(work: Promise<T>, deadline: AbortSignal | undefined): Promise<T | typeof CUT> {
  if (deadline === undefined) return work;
  let cut = (): void => undefined;
  const aborted = new Promise<typeof CUT>((resolve) => {
    cut = () => {
      resolve(CUT);
    };
    if (deadline.aborted) cut();
    else deadline.addEventListener('abort', cut, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    deadline.removeEventListener('abort', cut);
  }
}

/**
 * Takes a client that is idle. One that another user gave back inside a transaction is dropped: we would else join it.
 * @throws RS_SQL_UNAVAILABLE, RS_TX_DEADLINE
 */
export async function checkOut(pool: RawPool, deadline?: AbortSignal): Promise<Session> {
  for (;;) {
    const session = await connect(pool, deadline);
    if (session.status !== 'T' && session.status !== 'E') return session;
    session.drop();
  }
}

async function connect(pool: RawPool, deadline: AbortSignal | undefined): Promise<Session> {
  const connecting = pool.connect();
  let client: RawClient | typeof CUT;
  try {
    client = await unlessCut(connecting, deadline);
  } catch (cause) {
    throw new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause });
  }
  if (client !== CUT) return new Session(client);
  connecting.then(
    (late) => {
      late.release();
    },
    () => undefined,
  );
  throw new ReplaysafeError('RS_TX_DEADLINE', { cause: deadline?.reason, detail: 'no connection was free' });
}
