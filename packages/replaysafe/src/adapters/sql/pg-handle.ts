import { ReplaysafeError } from '../../errors.js';
import { sqlState, type SqlResult, type SqlTransaction } from '../../ports/sql.js';
import { toResult, type Session } from './pg-session.js';
import type { PgAnswer, PgClient, PgTaggedResult } from './pg-types.js';

/** A transaction that this adapter has opened, and the record of what became of its statements. */
export class PgTransaction<Client extends PgClient> implements SqlTransaction<Client> {
  readonly handle: Client;
  readonly xid: string;
  readonly #session: Session;
  readonly #savepoints: string[] = [];
  #savepointCount = 0;
  #pending = 0;
  #tracked = 0;
  #ended = false;
  #failed: unknown;
  #lost: ReplaysafeError | undefined;

  constructor(session: Session, xid: string) {
    this.#session = session;
    this.xid = xid;
    this.handle = revocableClient(session, this.#queryAsDriver) as Client;
    transactions.set(this.handle, this);
  }

  get failure(): unknown {
    return this.#lost ?? this.#failed;
  }

  /** The callback ended the transaction itself; nothing that follows is ours. */
  get lost(): ReplaysafeError | undefined {
    return this.#lost;
  }

  /** Revokes the handle and says how many statements nobody waits for. */
  end(): number {
    this.#ended = true;
    // A tracked call has at most one statement under way, which is counted as well.
    return Math.max(this.#pending, this.#tracked);
  }

  /** Why a statement would be refused now. */
  get refusal(): ReplaysafeError | undefined {
    return this.#ended ? new ReplaysafeError('RS_TX_REVOKED') : this.#lost;
  }

  /** Notes that the transaction cannot be committed any more, whatever its statements say. */
  lose(detail: string): void {
    if (!this.#ended) this.#lost ??= new ReplaysafeError('RS_TX_LOST', { detail });
  }

  /** Counts a call that becomes a statement only later, as one that is under way. */
  async track<T>(call: () => Promise<T>): Promise<T> {
    this.#tracked++;
    try {
      return await call();
    } finally {
      this.#tracked--;
    }
  }

  async query<Row>(text: string, params?: readonly unknown[]): Promise<SqlResult<Row>> {
    return toResult<Row>(await this.#run(text, params && [...params]));
  }

  async savepoint<T>(fn: () => Promise<T>): Promise<T> {
    const name = `rs_${++this.#savepointCount}`;
    await this.#run(`/* replaysafe:tx.savepoint */ savepoint ${name}`);
    this.#savepoints.push(name);
    try {
      const value = await fn();
      if (this.failure !== undefined) {
        throw new ReplaysafeError('RS_TX_ABORTED', { cause: this.failure, detail: 'inside a savepoint' });
      }
      this.#leave(name);
      await this.#run(`/* replaysafe:tx.release */ release savepoint ${name}`);
      return value;
    } catch (error) {
      this.#leave(name);
      await this.#rollBackTo(name);
      throw error;
    }
  }

  #leave(name: string): void {
    const top = this.#savepoints.at(-1);
    if (top === name) this.#savepoints.pop();
    else if (this.#savepoints.includes(name)) {
      this.#lost ??= new ReplaysafeError('RS_TX_LOST', {
        detail: 'savepoints of one transaction ran side by side: one rolls the other back',
      });
    }
  }

  async #rollBackTo(name: string): Promise<void> {
    try {
      await this.#run(`/* replaysafe:tx.rollback-to */ rollback to savepoint ${name}; release savepoint ${name}`);
    } catch {
      // The caller's error says more; the transaction stays failed and cannot commit.
    }
  }

  #run(config: unknown, values?: unknown): Promise<PgAnswer> {
    // Outside our transaction each statement would commit by itself, again in every attempt.
    const refusal = this.refusal;
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#pending++;
    return this.#session.send(config, values, (error, answer) => {
      this.#pending--;
      this.#record(error, answer);
    });
  }

  /**
   * In a failed transaction the server answers nothing but errors, so a success proves that a savepoint has healed it.
   * The status is read on success only: pg reports an error before it has read the status that follows it.
   */
  #record(error: unknown, answer: PgAnswer | undefined): void {
    if (error !== undefined) {
      // An error without SQLSTATE is the driver's own; the server's transaction knows nothing of it.
      if (sqlState(error) !== undefined) this.#failed ??= error;
      return;
    }
    this.#failed = undefined;
    if (this.#session.status === 'I' || (answer !== undefined && committedItself(answer))) {
      this.#lost ??= new ReplaysafeError('RS_TX_LOST', { detail: 'the callback sent COMMIT or ROLLBACK' });
    }
  }

  /** `client.query` in each of the forms that pg knows. */
  readonly #queryAsDriver = (config: unknown, values?: unknown, callback?: unknown): unknown => {
    if (isSubmittable(config)) {
      const refusal = this.refusal;
      if (refusal !== undefined) throw refusal;
      return (this.#session.client.query as (...args: unknown[]) => unknown)(config, values, callback);
    }
    const done = typeof values === 'function' ? values : (callback ?? callbackOf(config));
    const answer = this.#run(config, typeof values === 'function' ? undefined : values);
    if (typeof done !== 'function') return answer;
    const report = done as (error: unknown, answer?: PgAnswer) => void;
    answer.then(
      (result) => {
        queueMicrotask(() => {
          report(null, result);
        });
      },
      (error: unknown) => {
        queueMicrotask(() => {
          report(error);
        });
      },
    );
    return undefined;
  };
}

const transactions = new WeakMap<object, PgTransaction<PgClient>>();

/** The transaction that a handle belongs to, if this adapter made the handle. */
export function transactionOf(handle: object): PgTransaction<PgClient> | undefined {
  return transactions.get(handle);
}

/** The caller sees the whole client; its statements pass through the record, and its end is not the caller's to decide. */
function revocableClient(session: Session, query: (config: unknown) => unknown): object {
  return new Proxy(session.client, {
    get(client, property) {
      if (property === 'query') return query;
      if (property === 'release' || property === 'end' || property === 'connect') return refuse;
      const value: unknown = Reflect.get(client, property, client);
      return typeof value === 'function' ? (value.bind(client) as unknown) : value;
    },
  });
}

function refuse(): never {
  throw new ReplaysafeError('RS_TX_LOST', { detail: 'the connection belongs to the port until the callback returns' });
}

function isSubmittable(config: unknown): boolean {
  return typeof config === 'object' && config !== null && 'submit' in config && typeof config.submit === 'function';
}

function callbackOf(config: unknown): unknown {
  return typeof config === 'object' && config !== null && 'callback' in config ? config.callback : undefined;
}

function committedItself(answer: PgAnswer): boolean {
  const results = Array.isArray(answer) ? (answer as readonly PgTaggedResult[]) : [answer as PgTaggedResult];
  return results.some((result) => result.command === 'COMMIT');
}
