/**
 * A relay in a process of its own, to be frozen or killed. Reads DATABASE_URL, MODE, LEASE_MS and PUBLISH_TIMEOUT_MS; writes one JSON line
 * for each event of the outbox and one for each publish, which it answers when it reads a line.
 */
import { createInterface } from 'node:readline';
import pg from 'pg';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { EVENTS, onEvent, type EventName } from '../../src/events.js';
import { createRelay } from '../../src/outbox/index.js';

const say = (line: object): void => {
  process.stdout.write(`${JSON.stringify(line)}\n`);
};

for (const name of Object.keys(EVENTS) as EventName[]) {
  if (!name.startsWith('outbox.')) continue;
  onEvent(name, (payload) => {
    say({
      event: name,
      ...('ids' in payload && { ids: payload.ids }),
      ...('count' in payload && { count: payload.count }),
    });
  });
}

const lines = createInterface({ input: process.stdin });
const answers = lines[Symbol.asyncIterator]();
const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] });
const relay = createRelay({
  sql: fromPg(pool),
  publisher: {
    publish: async (records) => {
      say({ publishing: records.map(({ headers }) => headers['event-id']) });
      await answers.next();
      return records.map(() => ({ status: 'stored' }) as const);
    },
    stop: async () => undefined,
  },
  mode: process.env['MODE'] === 'two-phase' ? 'two-phase' : 'single-phase',
  leaseMs: Number(process.env['LEASE_MS']),
  publishTimeoutMs: Number(process.env['PUBLISH_TIMEOUT_MS']),
  pollIdleMs: 20,
  name: 'child',
});
relay.start();
lines.once('close', () => {
  void relay.stop().then(() => pool.end());
});
