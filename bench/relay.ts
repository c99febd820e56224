import { createDatabase, startPostgres } from '@replaysafe/test-services';
import pg from 'pg';
import { onEvent, type Publisher } from 'replaysafe';
import { fromPg } from 'replaysafe/adapters/sql/pg';
import { migrate } from 'replaysafe/migrate';
import { createOutbox, createRelay } from 'replaysafe/outbox';
import { measure, perSecond, type Measured } from './case.js';

const EVENTS = 10_000;
const RUNS = 3;

const noBroker: Publisher = {
  publish: (records) => Promise.resolve(records.map(() => ({ status: 'stored' }))),
  stop: () => Promise.resolve(),
};

/** Drains a backlog into a publisher that does nothing: what is left is the relay's own work and the database's. */
export async function benchRelay(): Promise<Measured[]> {
  const server = await startPostgres();
  const { url } = await createDatabase(server.url);
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  try {
    return await drainBacklogs(pool);
  } finally {
    await pool.end();
    await server.stop();
  }
}

async function drainBacklogs(pool: pg.Pool): Promise<Measured[]> {
  const sql = fromPg(pool);
  await migrate(sql);
  const outbox = createOutbox({ sql });

  const fill = async (): Promise<void> => {
    await pool.query('truncate replaysafe.outbox_event');
    const payload = { text: 'x'.repeat(280) };
    for (let first = 0; first < EVENTS; first += 1_000) {
      const events = Array.from({ length: 1_000 }, (_, n) => ({
        topic: 'bench',
        type: 'Filled',
        key: `k-${first + n}`,
        payload,
      }));
      await sql.transaction((tx) => outbox.enqueue(tx.handle, events));
    }
    await pool.query('analyze replaysafe.outbox_event');
  };

  const ours = (mode: 'single-phase' | 'two-phase', batchSize: number) => ({
    name: 'replaysafe',
    run: async () => {
      await fill();
      const relay = createRelay({ sql, publisher: noBroker, mode, batchSize });
      const figure = await perSecond(EVENTS, async () => {
        const drained = marked(EVENTS);
        relay.start();
        await drained;
      });
      await relay.stop();
      return figure;
    },
  });
  const bare = (batchSize: number) => ({
    name: 'bare',
    run: async () => {
      await fill();
      const client = await pool.connect();
      const figure = await perSecond(EVENTS, () => bareLoop(client, batchSize));
      client.release();
      return figure;
    },
  });

  const measured: Measured[] = [];
  for (const batchSize of [200, 1_000]) {
    for (const mode of ['single-phase', 'two-phase'] as const) {
      const name = `relay.drain.${mode}.batch-${batchSize}`;
      measured.push(...(await measure(name, 'events/s', RUNS, [ours(mode, batchSize), bare(batchSize)])));
    }
  }
  return measured;
}

function marked(count: number): Promise<void> {
  let seen = 0;
  return new Promise((resolve) => {
    const subscription = onEvent('outbox.marked', ({ ids }) => {
      seen += ids.length;
      if (seen < count) return;
      subscription.unsubscribe();
      resolve();
    });
  });
}

/** The single-phase relay as one writes it by hand, on the same table: no fence, no back-off, no outcomes. */
async function bareLoop(client: pg.PoolClient, batchSize: number): Promise<void> {
  for (;;) {
    await client.query('begin');
    const { rows } = await client.query<{ seq: string }>(
      `select seq, topic, aggregate_id, payload, headers from replaysafe.outbox_event
       where status = 'PENDING' order by seq limit $1 for update skip locked`,
      [batchSize],
    );
    if (rows.length > 0) {
      await client.query(
        `update replaysafe.outbox_event
         set status = 'PUBLISHED', published_at = clock_timestamp(), claim_token = gen_random_uuid(), attempts = 1
         where seq = any($1::bigint[])`,
        [rows.map(({ seq }) => seq)],
      );
    }
    await client.query('commit');
    if (rows.length === 0) return;
  }
}
