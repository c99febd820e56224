import assert from 'node:assert/strict';
import { isContentionState, sqlState } from '../../ports/sql.js';
import type { ConformanceCase } from '../conformance-case.js';
import { exists, freshId, INSERT, rejectsWith, swallowViolation, using, type SqlHarness } from './harness.js';

export const basics = <Tx>(): ConformanceCase<SqlHarness<Tx>>[] => [
  {
    name: 'a statement outside a transaction answers with rows and a count',
    run: async ({ sql }) => {
      const { rows, rowCount } = await sql.query<{ n: number }>('select $1::int + 1 as n', [41]);
      assert.deepEqual([[...rows], rowCount], [[{ n: 42 }], 1]);
      const updated = await sql.query('update conformance_row set note = null where id = $1', [freshId()]);
      assert.deepEqual([[...updated.rows], updated.rowCount], [[], 0]);
    },
  },
  {
    name: 'a transaction commits and returns what the callback returned',
    run: async ({ sql, observer, run }) => {
      const id = freshId();
      const xid = await sql.transaction(async (tx) => {
        await tx.query(INSERT, [id]);
        await run(tx.handle, `update conformance_row set note = 'by the handle' where id = '${id}'`);
        assert.equal(await exists(observer, id), false, 'seen before the commit');
        return tx.xid;
      });
      const { rows } = await observer.query('select note, xmin::text from conformance_row where id = $1', [id]);
      assert.deepEqual([...rows], [{ note: 'by the handle', xmin: xid }]);
    },
  },
  {
    name: 'a transaction rolls back and throws the very error that the callback threw',
    run: async ({ sql, observer }) => {
      const id = freshId();
      const failure = new Error('business says no');
      const work = sql.transaction(async (tx) => {
        await tx.query(INSERT, [id]);
        throw failure;
      });
      await assert.rejects(work, (error) => error === failure);
      assert.equal(await exists(observer, id), false);
    },
  },
  {
    name: "a statement's error names its SQLSTATE, and the transaction can go on after a savepoint",
    run: async ({ sql, observer }) => {
      const [first, second] = [freshId(), freshId()];
      await sql.transaction(async (tx) => {
        await tx.query(INSERT, [first]);
        const violation: unknown = await tx.savepoint(() => tx.query(INSERT, [first])).catch((error: unknown) => error);
        assert.equal(sqlState(violation), '23505');
        assert.equal(tx.failure, undefined, 'healed by the savepoint');
        await tx.savepoint(async () => {
          await tx.savepoint(() => tx.query(INSERT, [first])).catch(() => undefined);
          await tx.query(INSERT, [second]);
        });
      });
      assert.deepEqual([await exists(observer, first), await exists(observer, second)], [true, true]);
    },
  },
  {
    name: 'a failure that is swallowed inside a savepoint fails the savepoint, not the transaction',
    run: async ({ sql, observer }) => {
      const [kept, undone] = [freshId(), freshId()];
      await sql.transaction(async (tx) => {
        await tx.query(INSERT, [kept]);
        await rejectsWith(
          tx.savepoint(() => swallowViolation(tx, undone)),
          'RS_TX_ABORTED',
        );
      });
      assert.deepEqual([await exists(observer, kept), await exists(observer, undone)], [true, false]);
    },
  },
  {
    name: 'savepoints side by side are refused',
    run: async ({ sql, observer }) => {
      const [first, second] = [freshId(), freshId()];
      const work = sql.transaction(async (tx) => {
        let go = (): void => undefined;
        const gate = new Promise<void>((resolve) => (go = resolve));
        const outer = tx.savepoint(async () => {
          await gate;
          await tx.query(INSERT, [first]);
        });
        const inner = tx.savepoint(async () => {
          go();
          await outer;
          await tx.query(INSERT, [second]);
        });
        await Promise.allSettled([outer, inner]);
      });
      await rejectsWith(work, 'RS_TX_LOST');
      assert.deepEqual([await exists(observer, first), await exists(observer, second)], [false, false]);
    },
  },
  {
    name: 'a constraint that is checked at COMMIT throws its own error, and nothing is committed',
    run: async ({ sql }) => {
      const work = sql.transaction((tx) => tx.query('insert into conformance_child (id) values ($1)', [freshId()]));
      await assert.rejects(work, (error) => sqlState(error) === '23503');
      assert.equal((await sql.query('select from conformance_child')).rowCount, 0);
    },
  },
  {
    name: 'statement and lock time-outs are those of the transaction',
    run: async ({ sql }) => {
      const slow = sql.transaction((tx) => tx.query('select pg_sleep(30)'), { statementTimeoutMs: 50 });
      await assert.rejects(slow, (error) => sqlState(error) === '57014');
      const id = freshId();
      await sql.transaction(async (tx) => {
        await tx.query(INSERT, [id]);
        const blocked = sql.transaction((other) => other.query(INSERT, [id]), { lockTimeoutMs: 50 });
        await assert.rejects(blocked, (error) => sqlState(error) === '55P03' && isContentionState('55P03'));
      });
    },
  },
  {
    name: 'transactions at the same time are separate, and more of them than connections wait for one another',
    run: async ({ sql }) => {
      const work = Array.from({ length: 20 }, () => sql.transaction((tx) => Promise.resolve(tx.xid)));
      assert.equal(new Set(await Promise.all(work)).size, 20);
    },
  },
  {
    name: 'a server that cannot be reached is told so',
    run: async ({ open }) =>
      using(open({ unreachable: true }), async ({ sql }) => {
        await rejectsWith(sql.query('select 1'), 'RS_SQL_UNAVAILABLE');
        await rejectsWith(
          sql.transaction(() => Promise.resolve()),
          'RS_SQL_UNAVAILABLE',
        );
      }),
  },
  {
    name: 'an unknown option of a transaction is refused by name',
    run: async ({ sql }) => {
      const misspelt = { statementTimeoutMS: 1 } as object;
      await rejectsWith(
        sql.transaction(() => Promise.resolve(), misspelt),
        'RS_OPTION_UNKNOWN',
      );
    },
  },
];
