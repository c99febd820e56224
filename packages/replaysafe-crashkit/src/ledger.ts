/** One amount under the name of what it belongs to. */
export interface LedgerEntry {
  /** What the entry belongs to, e.g. an intended order. */
  readonly ref: string;
  /** In minor units. */
  readonly amount: number;
}

/** What one database says. */
export interface Book {
  readonly name: string;
  readonly entries: readonly LedgerEntry[];
}

/** One thing that is not as it should be. */
export interface Finding {
  readonly kind: 'lost' | 'double' | 'wrong-amount' | 'unknown';
  readonly ref: string;
  readonly book: string;
  readonly detail: string;
}

export interface Reconciliation {
  /** Intended operations that at least one book does not know. */
  readonly lost: number;
  /** Surplus effects: for each intended operation the book that has most, less the one it should have. */
  readonly double: number;
  /** Intended operations with another amount in some book, and entries that nobody intended. */
  readonly wrongAmount: number;
  readonly findings: readonly Finding[];
}

/**
 * Compares what was intended with what each book holds: each intended operation must be exactly once in every book,
 * with its amount, and no book may hold anything else.
 *
 * Pure, and blind to how the books came about: nothing that a killed process had counted enters it.
 */
export function reconcile(intended: readonly LedgerEntry[], books: readonly Book[]): Reconciliation {
  const expected = new Map(intended.map((entry) => [entry.ref, entry.amount]));
  const findings: Finding[] = [];
  const lost = new Set<string>();
  const wrong = new Set<string>();
  const surplus = new Map<string, number>();
  let unknown = 0;

  for (const book of books) {
    const amounts = new Map<string, number[]>();
    for (const { ref, amount } of book.entries) {
      const known = amounts.get(ref);
      if (known) known.push(amount);
      else amounts.set(ref, [amount]);
    }
    for (const [ref, amount] of expected) {
      const seen = amounts.get(ref) ?? [];
      const note = (kind: Finding['kind'], detail: string): void => {
        findings.push({ kind, ref, book: book.name, detail });
      };
      if (seen.length === 0) {
        lost.add(ref);
        note('lost', `${String(amount)} intended, nothing here`);
      }
      if (seen.length > 1) {
        surplus.set(ref, Math.max(surplus.get(ref) ?? 0, seen.length - 1));
        note('double', `${String(seen.length)} times`);
      }
      if (seen.some((found) => found !== amount)) {
        wrong.add(ref);
        note('wrong-amount', `${String(amount)} intended, here ${seen.join(', ')}`);
      }
    }
    for (const [ref, seen] of amounts) {
      if (expected.has(ref)) continue;
      unknown += seen.length;
      findings.push({ kind: 'unknown', ref, book: book.name, detail: `nobody intended it, here ${seen.join(', ')}` });
    }
  }
  return {
    lost: lost.size,
    double: [...surplus.values()].reduce((sum, count) => sum + count, 0),
    wrongAmount: wrong.size + unknown,
    findings,
  };
}
