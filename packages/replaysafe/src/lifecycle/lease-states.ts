/** What a worker wants to run: whatever is due by its interval, or one moment of its schedule. */
export type Turn =
  | { readonly kind: 'interval'; readonly everyMs: number }
  /** Without a moment: only what another has begun and not ended. */
  | { readonly kind: 'slot'; readonly slotMs: number | undefined };

/** A row of `worker_lease` as a pod sees it; the times were measured by the database. */
export interface LeaseRow {
  /** Null: the last run has ended. */
  readonly owner: string | null;
  readonly epoch: bigint;
  readonly failures: number;
  /** Until the lease runs out. */
  readonly heldMs: number | null;
  /** Until the next run is due by the interval; null where there was no run yet. */
  readonly dueInMs: number | null;
  readonly slotMs: number | null;
}

export type LeaseVerdict =
  | { readonly kind: 'take' }
  /** The moment of the schedule has been run, or there is nothing to go on with. */
  | { readonly kind: 'done' }
  | { readonly kind: 'wait'; readonly waitMs: number };

/** The shortest wait between two looks at a lease that another holds, in milliseconds. */
const BUSY_LOOK_MS = 1_000;

/**
 * What a pod may do about its turn. A run that was begun and not ended (its process is gone, or was frozen past its lease)
 * is due at once for whoever comes first.
 */
export function judgeLease(row: LeaseRow | undefined, turn: Turn, me: string): LeaseVerdict {
  if (row === undefined) return { kind: turn.kind === 'slot' && turn.slotMs === undefined ? 'done' : 'take' };
  if (row.owner !== null) {
    const heldMs = row.heldMs ?? 0;
    if (row.owner === me || heldMs <= 0) return { kind: 'take' };
    // A run that ends well leaves the next one to whoever looks first; a moment of a schedule it leaves done.
    const lookMs = turn.kind === 'interval' ? Math.max(turn.everyMs, BUSY_LOOK_MS) : heldMs;
    return { kind: 'wait', waitMs: Math.min(heldMs, lookMs) };
  }
  if (turn.kind === 'interval') {
    const dueInMs = row.dueInMs ?? 0;
    return dueInMs > 0 ? { kind: 'wait', waitMs: dueInMs } : { kind: 'take' };
  }
  // Whole milliseconds: the database counts in microseconds, and the way through a fraction is not exact.
  const done = turn.slotMs === undefined || (row.slotMs !== null && Math.round(row.slotMs) >= turn.slotMs);
  return { kind: done ? 'done' : 'take' };
}
