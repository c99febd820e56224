import assert from 'node:assert/strict';
import type { ConformanceCase } from '../conformance-case.js';
import { exists, freshId, INSERT, insertOf, rejectsWith, using, type SqlHarness } from './harness.js';

export const handles = <Tx>(): ConformanceCase<SqlHarness<Tx>>[] => [
  {
    name: 'P5: a statement that nobody awaits fails the transaction, by name',
    run: async ({ sql, observer, run }) => {
      const [seen, dangling] = [freshId(), freshId()];
      let left: Promise<unknown> = Promise.resolve();
      const work = sql.transaction(async (tx) => {
        await tx.query(INSERT, [seen]);
        left = run(tx.handle, insertOf(dangling)).catch(() => undefined);
      });
      await rejectsWith(work, 'RS_TX_DANGLING');
      await left;
      assert.deepEqual([await exists(observer, seen), await exists(observer, dangling)], [false, false]);
    },
  },
  {
    name: 'P5: a joined statement that nobody awaits does so too',
    run: async ({ sql, observer }) => {
      const id = freshId();
      let left: Promise<unknown> = Promise.resolve();
      const work = sql.transaction((tx) => {
        left = sql
          .join(tx.handle)
          .query(INSERT, [id])
          .catch(() => undefined);
        return Promise.resolve();
      });
      await rejectsWith(work, 'RS_TX_DANGLING');
      await left;
      assert.equal(await exists(observer, id), false);
    },
  },
  ...['committed', 'rolled back'].map((end) => ({
    name: `P5: a transaction that has been ${end} can be used by nobody any more`,
    run: async ({ open, run }: SqlHarness<Tx>) =>
      using(open({ max: 1 }), async ({ sql }) => {
        const late: (() => Promise<unknown>)[] = [];
        await sql
          .transaction((tx) => {
            late.push(
              () => tx.query('select 1'),
              () => tx.savepoint(() => Promise.resolve()),
              () => run(tx.handle, 'select 1'),
              async () => sql.join(tx.handle).query('select 1'),
            );
            return end === 'committed' ? Promise.resolve() : Promise.reject(new Error('no'));
          })
          .catch(() => undefined);
        // The only connection is now inside a stranger's transaction, which a late statement would join.
        await sql.transaction(async () => {
          for (const statement of late) await rejectsWith(statement(), 'RS_TX_REVOKED');
        });
      }),
  })),
  {
    name: 'P5: what comes between the end of the callback and the answer to COMMIT is refused',
    run: async ({ sql, observer, run }) => {
      const [first, late] = [freshId(), freshId()];
      let refused: Promise<unknown> = Promise.resolve();
      await sql.transaction(async (tx) => {
        await tx.query(INSERT, [first]);
        setImmediate(() => {
          refused = rejectsWith(run(tx.handle, insertOf(late)), 'RS_TX_REVOKED');
        });
      });
      await refused;
      assert.deepEqual([await exists(observer, first), await exists(observer, late)], [true, false]);
    },
  },
  {
    name: 'join refuses pools, strangers and handles without a transaction',
    run: async ({ sql, noHandles, ownHandle }) => {
      for (const stranger of [undefined, null, 'tx', {}, { query: 1 }, ...noHandles]) {
        await rejectsWith((async () => sql.join(stranger as Tx).query('select 1'))(), 'RS_OUTBOX_NO_TRANSACTION');
      }
      await using(ownHandle(), async ({ handle, run }) => {
        const attempt = async (): Promise<unknown> => sql.join(handle).query('select 1');
        await rejectsWith(attempt(), 'RS_OUTBOX_NO_TRANSACTION');
        await run('begin');
        await attempt();
        await run('commit');
        await rejectsWith(attempt(), 'RS_OUTBOX_NO_TRANSACTION');
      });
    },
  },
  ...['commit', 'rollback'].map((verb) => ({
    name: `join writes into the caller's own transaction and shares its ${verb}`,
    run: async ({ sql, observer, ownHandle }: SqlHarness<Tx>) =>
      using(ownHandle(), async ({ handle, run }) => {
        const id = freshId();
        await run('begin');
        const { rows } = await sql.join(handle).query(`${INSERT} returning id`, [id]);
        assert.deepEqual([...rows], [{ id }]);
        assert.equal(await exists(observer, id), false);
        await run(verb);
        assert.equal(await exists(observer, id), verb === 'commit');
      }),
  })),
  {
    name: 'join hands a statement over at once: it stands before a COMMIT that the caller sends next',
    run: async ({ sql, observer, ownHandle }) =>
      using(ownHandle(), async ({ handle, run }) => {
        const id = freshId();
        await run('begin');
        const first = run(`select pg_sleep(0.05)`);
        const joined = sql.join(handle).query(INSERT, [id]);
        await run('rollback');
        await Promise.all([first, joined]);
        assert.equal(await exists(observer, id), false, 'it was behind the end of its transaction');
      }),
  },
];
