import { createDatabase, type TestDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { inject } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent, type EventName, type EventPayloads } from '../../src/events.js';
import { migrate } from '../../src/migrate/index.js';
import { createOutbox, type Outbox, type Relay } from '../../src/outbox/index.js';
import type { BrokerRecord, Publisher, PublishOutcome } from '../../src/ports/broker.js';
import type { OutboxEvent } from '../../src/ports/enqueue.js';
import type { SqlPort } from '../../src/ports/sql.js';

export interface Row {
  readonly id: string;
  readonly seq: string;
  readonly topic: string;
  readonly status: string;
  readonly claim_token: string | null;
  readonly locked_until: Date | null;
  readonly attempts: number;
  readonly failures: number;
  readonly next_attempt_at: Date | null;
  readonly refused_since: Date | null;
  readonly last_error: string | null;
  readonly published_at: Date | null;
}

/** A database of one's own with the library's tables. */
export class TestOutbox {
  readonly database: TestDatabase;
  readonly pool: pg.Pool;
  readonly sql: SqlPort<pg.PoolClient>;
  readonly outbox: Outbox<pg.PoolClient>;

  private constructor(database: TestDatabase, pool: pg.Pool) {
    this.database = database;
    this.pool = pool;
    this.sql = fromPg(pool);
    this.outbox = createOutbox({ sql: this.sql });
  }

  static async open(): Promise<TestOutbox> {
    const database = await createDatabase(inject('databaseUrl'));
    const pool = new pg.Pool({ connectionString: database.url, max: 8 });
    pool.on('error', () => undefined);
    const opened = new TestOutbox(database, pool);
    await migrate(opened.sql);
    return opened;
  }

  async close(): Promise<void> {
    await this.pool.end();
    await this.database.drop();
  }

  /** Writes events in a transaction of their own; the ids in their order. */
  async write(...events: readonly Partial<OutboxEvent>[]): Promise<string[]> {
    const ids = await this.sql.transaction((tx) =>
      this.outbox.enqueue(
        tx,
        events.map((event) => ({ topic: 'orders', type: 'OrderConfirmed', payload: { n: 1 }, ...event })),
      ),
    );
    return ids.map(({ id }) => id);
  }

  writeMany(count: number, event: Partial<OutboxEvent> = {}): Promise<string[]> {
    return this.write(...Array.from({ length: count }, (_, n) => ({ payload: { n }, ...event })));
  }

  async rows(): Promise<Row[]> {
    const { rows } = await this.pool.query<Row>('select * from replaysafe.outbox_event order by seq');
    return rows;
  }

  async statuses(): Promise<string[]> {
    return (await this.rows()).map(({ status }) => status);
  }
}

export const STORED: PublishOutcome = { status: 'stored' };

/**
 * A publisher whose answers the test decides: for faults that a real broker cannot be made to show on demand.
 * Remembers what was stored, in the order of storing.
 */
export class ScriptedPublisher implements Publisher {
  readonly stored: BrokerRecord[] = [];
  calls = 0;
  /** What becomes of each record; `stored` by default. */
  answer: (record: BrokerRecord) => PublishOutcome = () => STORED;
  /** Runs before a publish answers: hang, wait, fail. */
  before: (records: readonly BrokerRecord[], deadline: AbortSignal) => Promise<void> = async () => undefined;

  async publish(records: readonly BrokerRecord[], deadline: AbortSignal): Promise<readonly PublishOutcome[]> {
    this.calls++;
    await this.before(records, deadline);
    return records.map((record) => {
      const outcome = this.answer(record);
      if (outcome.status === 'stored') this.stored.push(record);
      return outcome;
    });
  }

  async stop(): Promise<void> {
    // Nothing is open.
  }

  storedIds(): string[] {
    return this.stored.map(({ headers }) => headers['event-id']!);
  }
}

export const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else {
      signal.addEventListener('abort', () => {
        resolve();
      });
    }
  });

/** A promise that the test resolves. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return {
    opened,
    open: () => {
      open();
    },
  };
}

/** The next event of this name that the predicate accepts. */
export function nextEvent<Name extends EventName>(
  name: Name,
  accepts: (payload: EventPayloads[Name]) => boolean = () => true,
  timeoutMs = 10_000,
): Promise<EventPayloads[Name]> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      listener.unsubscribe();
      reject(new Error(`no ${name} within ${timeoutMs} ms`));
    }, timeoutMs);
    const listener = onEvent(name, (payload) => {
      if (!accepts(payload)) return;
      clearTimeout(timer);
      listener.unsubscribe();
      resolve(payload);
    });
  });
}

/** All events of some names while a test runs, in order. */
export function recordEvents(...names: readonly EventName[]) {
  const seen: { name: EventName; payload: Record<string, unknown> }[] = [];
  const listeners = names.map((name) =>
    onEvent(name, (payload) => seen.push({ name, payload: payload as unknown as Record<string, unknown> })),
  );
  return {
    seen,
    of: (name: EventName) => seen.filter((event) => event.name === name).map(({ payload }) => payload),
    names: () => seen.map(({ name }) => name),
    [Symbol.dispose]: () => {
      for (const listener of listeners) listener.unsubscribe();
    },
  };
}

/** Runs iterations until the relay finds nothing to claim. */
export async function drain(relay: Relay): Promise<void> {
  for (let round = 0; round < 1_000; round++) {
    if ((await relay.runOnce()).claimed === 0) return;
  }
  throw new Error('the outbox does not get empty');
}
