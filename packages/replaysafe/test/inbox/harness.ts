import { createDatabase } from '@replaysafe/test-services';
import pg from 'pg';
import { inject } from 'vitest';
import { fromPg } from '../../src/adapters/sql/pg.js';
import { onEvent, type EventName, type EventPayloads } from '../../src/events.js';
import { createConsumer, type Consumer, type ConsumerOptions } from '../../src/inbox/index.js';
import { createOutbox } from '../../src/outbox/index.js';
import { migrate } from '../../src/migrate/index.js';
import type { SqlPort } from '../../src/ports/sql.js';
import { type InProcessBroker, InProcessSubscriber, type Faults } from './in-process-broker.js';

type InboxEventName = Extract<EventName, `inbox.${string}`>;
type Listed = { readonly [Name in InboxEventName]: EventPayloads[Name][] };

const NAMES: readonly InboxEventName[] = [
  'inbox.received',
  'inbox.prepared',
  'inbox.handled',
  'inbox.committed',
  'inbox.duplicate',
  'inbox.parked',
  'inbox.failed',
  'inbox.offset-committed',
];

/** What one consumer has told, from its first moment on. */
export class Diary {
  readonly order: InboxEventName[] = [];
  readonly #listed = Object.fromEntries(NAMES.map((name) => [name, []])) as unknown as Listed;
  readonly #listeners: { unsubscribe(): void }[];
  readonly #waiters = new Set<() => void>();

  constructor(consumer: string) {
    this.#listeners = NAMES.map((name) =>
      onEvent(name, (payload) => {
        if (payload.consumer !== consumer) return;
        this.order.push(name);
        (this.#listed[name] as unknown[]).push(payload);
        for (const look of this.#waiters) look();
      }),
    );
  }

  of<Name extends InboxEventName>(name: Name): readonly EventPayloads[Name][] {
    return this.#listed[name];
  }

  /** Waits until the condition holds, looking after each event. */
  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!condition()) return;
        this.#waiters.delete(look);
        resolve();
      };
      this.#waiters.add(look);
      look();
    });
  }

  close(): void {
    for (const listener of this.#listeners) listener.unsubscribe();
  }
}

export interface Letter {
  readonly id: string;
  readonly topic: string;
  readonly type: string;
  readonly key: string | null;
  readonly payload: Buffer | null;
  readonly content_type: string | null;
  readonly headers: Record<string, string>;
}

/** A database with the tables, and a table of effects that lets doubles show, */
export async function openShop(pool: Partial<pg.PoolConfig> = {}) {
  const database = await createDatabase(inject('databaseUrl'));
  const direct = new pg.Pool({ connectionString: database.url, max: 4 });
  await migrate(fromPg(direct));
  await direct.query(`
    create table effect (n bigint generated always as identity, event_id text not null, by text not null default '');
    create table guarded (event_id text primary key)`);
  const used = new pg.Pool({ connectionString: database.url, max: 10, ...pool });
  used.on('error', () => undefined);
  const sql = fromPg(used);
  return {
    url: database.url,
    sql,
    pool: direct,
    effects: async (): Promise<string[]> =>
      (await direct.query<{ event_id: string }>('select event_id from effect order by n')).rows.map(
        (row) => row.event_id,
      ),
    processed: async (): Promise<
      { event_id: string; status: string; error_code: string | null; error: string | null }[]
    > =>
      (
        await direct.query(
          'select event_id, status, attempt, error_code, error from replaysafe.processed_event order by 1',
        )
      ).rows as never,
    letters: async (): Promise<Letter[]> =>
      (
        await direct.query<Letter>(
          `select id, topic, event_type as type, aggregate_id as key, payload, content_type, headers
           from replaysafe.outbox_event order by seq`,
        )
      ).rows,
    empty: async () => {
      await direct.query('truncate effect, guarded, replaysafe.outbox_event, replaysafe.processed_event cascade');
    },
    close: async () => {
      await used.end();
      await direct.end();
      await database.drop();
    },
  };
}

export type Shop = Awaited<ReturnType<typeof openShop>>;

export interface Running extends AsyncDisposable {
  readonly consumer: Consumer;
  readonly subscriber: InProcessSubscriber;
  readonly diary: Diary;
}

export type Handle = ConsumerOptions<pg.PoolClient, string>['handle'];

/** Writes one effect for each event. */
export const apply: Handle = async (event, ctx) => {
  await ctx.tx.query('insert into effect (event_id) values ($1)', [event.id]);
};

/** Starts a consumer of the topic `orders`. The broker may hold events already, or get them later. */
export async function run(
  shop: { readonly sql: SqlPort<pg.PoolClient> },
  broker: InProcessBroker,
  options: Partial<ConsumerOptions<pg.PoolClient, string>> & { readonly faults?: Faults } = {},
): Promise<Running> {
  const { faults, ...given } = options;
  const subscriber = new InProcessSubscriber(broker, faults);
  const name = given.consumer ?? 'billing';
  const diary = new Diary(name);
  const consumer = createConsumer<pg.PoolClient, string>({
    sql: shop.sql,
    subscriber,
    consumer: name,
    topics: ['orders'],
    handle: apply,
    outbox: createOutbox({ sql: shop.sql }),
    retryBackoff: { baseMs: 1, capMs: 5 },
    ...given,
  });
  await consumer.start();
  return {
    consumer,
    subscriber,
    diary,
    [Symbol.asyncDispose]: async () => {
      await consumer.stop();
      diary.close();
    },
  };
}

/** The broker knows that everything before this offset is settled. */
export const offsetIs = (running: Running, offset: number): Promise<void> =>
  running.diary.until(() => running.diary.of('inbox.offset-committed').at(-1)?.nextOffset === BigInt(offset));
