import { orMigratePending, sqlState, type SqlExecutor, type SqlPort, type SqlResult } from '../ports/sql.js';
import type { HttpAnswer } from './http.js';
import { lockId } from './key.js';
import { idempotencySql } from './sql.js';
import type { IdempotencyRecord, RecordState } from './states.js';
import type { AnswerCodec } from './stored-answer.js';

/** One use of a key: whose, which, and for what request. */
export interface Operation {
  readonly keyHash: Buffer;
  readonly scope: string;
  readonly key: string;
  readonly fp: Buffer;
  readonly fpVersion: number;
}

/** `locked`: another request of this key is running. `taken`: there is a committed record, that a look-up will find. */
export type ClaimResult = 'claimed' | 'locked' | 'taken';

interface Row {
  readonly fp: Uint8Array;
  readonly fp_version: number;
  readonly state: RecordState;
  readonly status: number | null;
  readonly headers: string | null;
  readonly body: Uint8Array | null;
  readonly body_omitted: boolean;
  readonly leased: boolean;
  readonly past_retention: boolean;
  readonly written_by: string;
}

export interface StoreSettings {
  readonly sql: SqlPort<never> | SqlPort;
  readonly schema: string;
  readonly retentionMs: number;
  readonly codec: AnswerCodec;
}

const LOCK_NOT_AVAILABLE = '55P03';

/** The records, in words of the protocol. Each verb throws RS_MIGRATE_PENDING when the table is missing. */
export class Store {
  readonly #sql: SqlExecutor;
  readonly #text: ReturnType<typeof idempotencySql>;
  readonly #retentionMs: number;
  readonly #codec: AnswerCodec;

  constructor({ sql, schema, retentionMs, codec }: StoreSettings) {
    this.#sql = sql;
    this.#text = idempotencySql(schema);
    this.#retentionMs = retentionMs;
    this.#codec = codec;
  }

  async read({ keyHash }: Operation): Promise<IdempotencyRecord | undefined> {
    const { rows } = await send<Row>(this.#sql, this.#text.read, [keyHash]);
    const row = rows[0];
    if (row === undefined) return undefined;
    const origin = { fp: row.fp, fpVersion: row.fp_version, writtenBy: row.written_by };
    switch (row.state) {
      case 'running':
        return { ...origin, state: 'running', leased: row.leased };
      case 'completed':
        return { ...origin, state: 'completed', pastRetention: row.past_retention, answer: this.#answerOf(row) };
      case 'expired':
        return { ...origin, state: 'expired' };
    }
  }

  async claim(tx: SqlExecutor, { keyHash, scope, fp, fpVersion }: Operation): Promise<ClaimResult> {
    const lock = await tx.query<{ locked: boolean }>(this.#text.lock, [lockId(keyHash)]);
    if (lock.rows[0]?.locked !== true) return 'locked';
    try {
      const { rowCount } = await send(tx, this.#text.claim, [keyHash, scope, fp, fpVersion]);
      return rowCount === 1 ? 'claimed' : 'taken';
    } catch (error) {
      // Somebody who did not take the lock has an uncommitted row of this key.
      if (sqlState(error) === LOCK_NOT_AVAILABLE) return 'locked';
      throw error;
    }
  }

  /** @returns false when the claim is gone */
  async complete(tx: SqlExecutor, { keyHash }: Operation, answer: HttpAnswer): Promise<boolean> {
    const { status, headers, body, bodyOmitted } = this.#codec.encode(answer);
    const params = [keyHash, status, headers, body, bodyOmitted, this.#retentionMs];
    return (await send(tx, this.#text.complete, params)).rowCount === 1;
  }

  /** What the port runs last before COMMIT. */
  verification({ keyHash }: Operation): { readonly text: string; readonly params: readonly unknown[] } {
    return { text: this.#text.verify, params: [keyHash] };
  }

  #answerOf(row: Row): HttpAnswer | undefined {
    const { status, headers, body, body_omitted: bodyOmitted } = row;
    if (status === null || headers === null) return undefined;
    return this.#codec.decode({ status, headers, body, bodyOmitted });
  }
}

/** A statement on our own table, which the migrations make. */
async function send<Row>(sql: SqlExecutor, text: string, params: readonly unknown[]): Promise<SqlResult<Row>> {
  try {
    return await sql.query<Row>(text, params);
  } catch (error) {
    throw orMigratePending(error);
  }
}
