import { describe, expect, test } from 'vitest';
import { reconcile } from '../src/index.js';

const entry = (ref: string, amount = 100) => ({ ref, amount });
const counts = ({ lost, double, wrongAmount }: ReturnType<typeof reconcile>) => ({ lost, double, wrongAmount });

describe('reconcile', () => {
  test('finds nothing when each intended operation is once in every book', () => {
    const intended = [entry('a', 1), entry('b', 2)];
    const result = reconcile(intended, [
      { name: 'orders', entries: intended },
      { name: 'billing', entries: [...intended].reverse() },
    ]);
    expect(result).toEqual({ lost: 0, double: 0, wrongAmount: 0, findings: [] });
  });

  test('counts an operation as lost once, however many books miss it', () => {
    const result = reconcile(
      [entry('a'), entry('b')],
      [
        { name: 'billing', entries: [entry('b')] },
        { name: 'provider', entries: [] },
      ],
    );
    expect(counts(result)).toEqual({ lost: 2, double: 0, wrongAmount: 0 });
    expect(result.findings).toHaveLength(3);
  });

  test('counts surplus effects, not the books that show them', () => {
    const result = reconcile(
      [entry('a')],
      [
        { name: 'billing', entries: [entry('a'), entry('a')] },
        { name: 'provider', entries: [entry('a'), entry('a'), entry('a')] },
      ],
    );
    expect(counts(result)).toEqual({ lost: 0, double: 2, wrongAmount: 0 });
  });

  test('counts another amount, and an entry that nobody intended, as a wrong amount', () => {
    const result = reconcile([entry('a', 5)], [{ name: 'provider', entries: [entry('a', 6), entry('ghost')] }]);
    expect(counts(result)).toEqual({ lost: 0, double: 0, wrongAmount: 2 });
    expect(result.findings.map((finding) => finding.kind)).toEqual(['wrong-amount', 'unknown']);
  });
});
