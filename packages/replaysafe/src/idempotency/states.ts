import type { HttpAnswer } from './http.js';

/**
 * The life of a record. In atomic mode `running` is never committed: a request that is cut takes its claim and its effect
 * with it, and the key is free again.
 */
export type RecordState = 'running' | 'completed' | 'expired';

/** Where a record may go from each state; `absent` is no row. The CHECK constraints tie each state to its columns. */
export const TRANSITIONS: Readonly<Record<RecordState | 'absent', readonly (RecordState | 'absent')[]>> = {
  absent: ['running'],
  running: ['completed', 'absent'],
  completed: ['expired'],
  expired: ['absent'],
};

/** What a look-up finds. */
export type IdempotencyRecord = RecordOrigin &
  (
    | { readonly state: 'running'; /** Somebody holds it by a lease. */ readonly leased: boolean }
    | {
        readonly state: 'completed';
        readonly pastRetention: boolean;
        /** None when it was not stored. */ readonly answer: HttpAnswer | undefined;
      }
    | { readonly state: 'expired' }
  );

interface RecordOrigin {
  readonly fp: Uint8Array;
  readonly fpVersion: number;
  /** The id of the transaction that wrote this version of the row, without its epoch. */
  readonly writtenBy: string;
}

export type Verdict =
  | { readonly kind: 'replay'; readonly answer: HttpAnswer }
  | { readonly kind: 'reused' | 'in-progress' | 'response-unavailable' | 'expired' | 'unreadable' };

/** What a record means for a request of that key. Never "run it again": whoever finds a record does not execute. */
export function judge(record: IdempotencyRecord, fp: Uint8Array, fpVersion: number): Verdict {
  // Written by a newer release whose recipe is unknown here: whether it is the same request, only that release can tell.
  if (record.fpVersion !== fpVersion) return { kind: 'unreadable' };
  if (Buffer.compare(record.fp, fp) !== 0) return { kind: 'reused' };
  switch (record.state) {
    case 'running':
      // Committed, although nobody holds it: its handler ended the transaction by itself. The effect is there.
      return { kind: record.leased ? 'in-progress' : 'response-unavailable' };
    case 'completed':
      if (record.pastRetention) return { kind: 'expired' };
      return record.answer === undefined ? { kind: 'response-unavailable' } : { kind: 'replay', answer: record.answer };
    case 'expired':
      return { kind: 'expired' };
  }
}
