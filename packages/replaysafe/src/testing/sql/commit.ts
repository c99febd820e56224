import assert from 'node:assert/strict';
import { sqlState } from '../../ports/sql.js';
import type { ConformanceCase } from '../conformance-case.js';
import {
  eventually,
  exists,
  freshId,
  INSERT,
  insertOf,
  rejectsWith,
  running,
  swallowViolation,
  using,
  type SqlHarness,
} from './harness.js';

export const commits = <Tx>(): ConformanceCase<SqlHarness<Tx>>[] => [
  {
    name: 'P1: a swallowed violation would make COMMIT a ROLLBACK; it is thrown, by name',
    run: async ({ sql, observer }) => {
      const id = freshId();
      const work = sql.transaction(async (tx) => {
        await swallowViolation(tx, id);
        assert.equal(sqlState(tx.failure), '23505', 'on record as soon as it happened');
      });
      const error = await rejectsWith(work, 'RS_TX_ABORTED');
      assert.equal(sqlState(error), '23505', 'the cause is the violation');
      assert.equal(await exists(observer, id), false);
    },
  },
  {
    name: "P1: so is one that happened on the driver's own handle",
    run: async ({ sql, observer, run }) => {
      const id = freshId();
      const work = sql.transaction(async (tx) => {
        await run(tx.handle, insertOf(id));
        await run(tx.handle, insertOf(id)).catch(() => undefined);
      });
      assert.equal(sqlState(await rejectsWith(work, 'RS_TX_ABORTED')), '23505');
      assert.equal(await exists(observer, id), false);
    },
  },
  {
    name: 'P1: a callback that heals its transaction with a savepoint of its own commits',
    run: async ({ sql, observer, run }) => {
      const id = freshId();
      await sql.transaction(async (tx) => {
        await run(tx.handle, insertOf(id));
        await run(tx.handle, 'savepoint mine');
        await run(tx.handle, insertOf(id)).catch(() => undefined);
        await run(tx.handle, 'rollback to savepoint mine');
      });
      assert.equal(await exists(observer, id), true);
    },
  },
  ...['rollback', 'commit'].map((verb) => ({
    name: `P1: a callback that sends ${verb.toUpperCase()} itself is told that the rest was not in the transaction`,
    run: async ({ sql, observer, run }: SqlHarness<Tx>) => {
      const [before, after] = [freshId(), freshId()];
      const work = sql.transaction(async (tx) => {
        await tx.query(INSERT, [before]);
        await run(tx.handle, verb);
        await tx.query(INSERT, [after]);
      });
      await rejectsWith(work, 'RS_TX_LOST');
      assert.equal(await exists(observer, before), verb === 'commit');
    },
  })),
  {
    name: 'P1: a transaction that the callback began in place of ours is not committed',
    run: async ({ sql, observer, run }) => {
      const id = freshId();
      const work = sql.transaction(async (tx) => {
        await run(tx.handle, 'rollback; begin');
        await tx.query(INSERT, [id]);
      });
      await rejectsWith(work, 'RS_TX_LOST');
      assert.equal(await exists(observer, id), false);
    },
  },
  {
    name: 'P1: the last statement before COMMIT must find our own row',
    run: async ({ sql, observer }) => {
      const [found, gone] = [freshId(), freshId()];
      const commitIf = (id: string) => ({
        verify: { text: 'select from conformance_row where id = $1 and note is null', params: [id] },
      });
      await sql.transaction((tx) => tx.query(INSERT, [found]), commitIf(found));
      const work = sql.transaction(async (tx) => {
        await tx.query(INSERT, [gone]);
        await tx.query("update conformance_row set note = 'taken' where id = $1", [gone]);
      }, commitIf(gone));
      await rejectsWith(work, 'RS_TX_LOST');
      assert.deepEqual([await exists(observer, found), await exists(observer, gone)], [true, false]);
    },
  },
  {
    name: 'P2: a COMMIT without an answer is of unknown outcome at the deadline, and it is not cancelled',
    run: async ({ observer, openThroughProxy }) =>
      using(openThroughProxy(), async ({ sql, withholdReplies }) => {
        const id = freshId();
        const deadline = new AbortController();
        const work = sql.transaction(
          async (tx) => {
            await tx.query(INSERT, [id]);
            withholdReplies();
          },
          { deadline: deadline.signal },
        );
        const refusal = rejectsWith(work, 'RS_TX_OUTCOME_UNKNOWN');
        await eventually('the server has committed', () => exists(observer, id));
        deadline.abort();
        await refusal;
      }),
  },
  {
    name: 'P2: so is one whose connection is cut',
    run: async ({ observer, openThroughProxy }) =>
      using(openThroughProxy(), async ({ sql, withholdReplies, cut }) => {
        const id = freshId();
        const work = sql.transaction(async (tx) => {
          await tx.query(INSERT, [id]);
          withholdReplies();
        });
        const refusal = rejectsWith(work, 'RS_TX_OUTCOME_UNKNOWN');
        await eventually('the server has committed', () => exists(observer, id));
        cut();
        await refusal;
      }),
  },
  {
    name: 'P2: so is one whose wait for a synchronous standby was cancelled',
    run: async ({ openWithoutStandby }) => {
      if (openWithoutStandby === undefined) return;
      await using(openWithoutStandby(), async ({ sql, observer }) => {
        const work = sql.transaction((tx) => tx.query('create table kept ()'));
        const refusal = rejectsWith(work, 'RS_TX_OUTCOME_UNKNOWN');
        await eventually('the wait is cancelled', async () => {
          const cancelled = await observer.query(
            "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'",
          );
          return cancelled.rowCount === 1;
        });
        await refusal;
        assert.equal((await observer.query("select from pg_class where relname = 'kept'")).rowCount, 1);
      });
    },
  },
  {
    name: 'a deadline during a statement drops the connection; nothing is committed',
    run: async ({ sql, observer }) => {
      const id = freshId();
      const deadline = new AbortController();
      const work = sql.transaction(
        async (tx) => {
          await tx.query(INSERT, [id]);
          await tx.query(`/* ${id} */ select pg_sleep(30)`);
        },
        { deadline: deadline.signal },
      );
      const refusal = rejectsWith(work, 'RS_TX_DEADLINE');
      await running(observer, id);
      deadline.abort();
      await refusal;
      // The same row can be written as soon as the server has noticed.
      await sql.transaction((tx) => tx.query(INSERT, [id]));
    },
  },
  {
    name: 'a deadline does not wait for a callback that hangs, and revokes its handle',
    run: async ({ sql, observer, run }) => {
      const id = freshId();
      const deadline = new AbortController();
      let late = (): Promise<unknown> => Promise.resolve();
      const work = sql.transaction(
        async (tx) => {
          late = () => run(tx.handle, insertOf(id));
          await tx.query(INSERT, [id]);
          deadline.abort();
          await new Promise(() => undefined);
        },
        { deadline: deadline.signal },
      );
      await rejectsWith(work, 'RS_TX_DEADLINE');
      await rejectsWith(late(), 'RS_TX_REVOKED');
      assert.equal(await exists(observer, id), false);
    },
  },
  {
    name: 'a deadline bounds the wait for a connection, which is not lost by it',
    run: async ({ open }) =>
      using(open({ max: 1 }), async ({ sql }) => {
        await rejectsWith(
          sql.transaction(() => Promise.resolve(), { deadline: AbortSignal.abort() }),
          'RS_TX_DEADLINE',
        );
        await sql.transaction(async () => {
          const deadline = new AbortController();
          const waiting = sql.transaction(() => Promise.resolve(), { deadline: deadline.signal });
          deadline.abort();
          await rejectsWith(waiting, 'RS_TX_DEADLINE');
        });
        await sql.transaction(() => Promise.resolve());
      }),
  },
];
