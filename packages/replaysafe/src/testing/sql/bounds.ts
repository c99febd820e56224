import assert from 'node:assert/strict';
import type { SqlTransaction } from '../../ports/sql.js';
import type { ConformanceCase } from '../conformance-case.js';
import {
  eventually,
  exists,
  freshId,
  INSERT,
  insertOf,
  rejectsWith,
  running,
  using,
  type SqlHarness,
} from './harness.js';

const SETTINGS = `select
  current_setting('statement_timeout') as statement,
  current_setting('lock_timeout') as lock,
  current_setting('idle_in_transaction_session_timeout') as idle,
  current_setting('client_connection_check_interval') as peer`;

const show = async (tx: SqlTransaction, name: string): Promise<string | undefined> =>
  (await tx.query<{ value: string }>('select current_setting($1) as value', [name])).rows[0]?.value;

export const bounds = <Tx>(): ConformanceCase<SqlHarness<Tx>>[] => [
  {
    name: 'P3: each transaction sets its four bounds, for itself alone',
    run: async ({ sql, open }) => {
      const own = { statementTimeoutMs: 1_234, lockTimeoutMs: 432, idleTimeoutMs: 2_345 };
      const inside = await sql.transaction((tx) => tx.query(SETTINGS), own);
      assert.deepEqual([...inside.rows], [{ statement: '1234ms', lock: '432ms', idle: '2345ms', peer: '1s' }]);
      const byDefault = await sql.transaction((tx) => tx.query(SETTINGS));
      assert.deepEqual([...byDefault.rows], [{ statement: '10s', lock: '5s', idle: '15s', peer: '1s' }]);
      await using(open({ max: 1 }), async (single) => {
        const before = await single.sql.query(SETTINGS);
        await single.sql.transaction(() => Promise.resolve(), own);
        assert.deepEqual(await single.sql.query(SETTINGS), before);
      });
    },
  },
  {
    name: 'P3: the locks of an owner that is killed inside a long statement are free within the peer check',
    run: async ({ observer, spawnOwner, sql }) => {
      const id = freshId();
      const owner = await spawnOwner(`with taken as (${insertOf(id)} returning id) select pg_sleep(55) from taken`);
      try {
        await running(observer, id);
        owner.kill();
        // Waits on the row; the owner's statement alone would hold it for most of a minute.
        await sql.transaction((tx) => tx.query(INSERT, [id]), { lockTimeoutMs: 10_000 });
        assert.equal(await exists(observer, id), true);
      } finally {
        await owner.stop();
      }
    },
  },
  {
    name: 'P3: an owner that freezes between statements loses its session, and cannot commit when it wakes',
    run: async ({ observer, sql }) => {
      const id = freshId();
      const work = sql.transaction(
        async (tx) => {
          await tx.query(INSERT, [id]);
          // Frozen, as the server sees it, until another has taken the row.
          await sql.transaction((other) => other.query("insert into conformance_row values ($1, 'other')", [id]));
        },
        { idleTimeoutMs: 150 },
      );
      await rejectsWith(work, 'RS_SQL_UNAVAILABLE');
      const { rows } = await observer.query('select note from conformance_row where id = $1', [id]);
      assert.deepEqual([...rows], [{ note: 'other' }]);
    },
  },
  {
    name: 'a session that the server ends under way does not end the process; nothing is committed',
    run: async ({ observer, sql }) => {
      const id = freshId();
      const work = sql.transaction(async (tx) => {
        await tx.query(INSERT, [id]);
        const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid');
        await observer.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
        await eventually('the session is gone', async () => {
          const { rowCount } = await observer.query('select from pg_stat_activity where pid = $1', [rows[0]?.pid]);
          return rowCount === 0;
        });
        // So that the driver has read the end of its session before COMMIT is due; after that the outcome is unknown.
        await tx.query('select 1').catch(() => undefined);
      });
      await rejectsWith(work, 'RS_SQL_UNAVAILABLE');
      assert.equal(await exists(observer, id), false);
      await sql.transaction((tx) => tx.query(INSERT, [id]));
    },
  },
  {
    name: "P4: transactions are READ COMMITTED whatever the server's default is",
    run: async ({ open }) =>
      using(open({ settings: { default_transaction_isolation: 'serializable' }, max: 2 }), async ({ sql }) => {
        const level = await sql.transaction((tx) => show(tx, 'transaction_isolation'));
        assert.equal(level, 'read committed');
      }),
  },
  {
    name: 'P4: who loses the race for a row waits, and then reads what the winner committed',
    run: async ({ open, observer }) =>
      using(open({ settings: { default_transaction_isolation: 'serializable' }, max: 2 }), async ({ sql }) => {
        const id = freshId();
        let losing: Promise<unknown> = Promise.resolve();
        await sql.transaction(async (winner) => {
          await winner.query("insert into conformance_row values ($1, 'winner')", [id]);
          losing = sql.transaction(async (loser) => {
            await loser.query('select 1');
            const claimed = await loser.query(`/* ${id} */ ${INSERT} on conflict do nothing`, [id]);
            const read = await loser.query('select note from conformance_row where id = $1', [id]);
            return [claimed.rowCount, [...read.rows]];
          });
          await running(observer, id);
        });
        assert.deepEqual(await losing, [0, [{ note: 'winner' }]]);
      }),
  },
  {
    name: 'P6: commits are durable where the default is not, and as durable as the default says elsewhere',
    run: async ({ open }) => {
      for (const [given, used] of [
        ['off', 'on'],
        ['local', 'local'],
        ['remote_apply', 'remote_apply'],
      ] as const) {
        await using(open({ settings: { synchronous_commit: given } }), async ({ sql }) => {
          assert.equal(await sql.transaction((tx) => show(tx, 'synchronous_commit')), used);
        });
      }
    },
  },
];
