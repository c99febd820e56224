import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { offsetIs, openShop, run, type Shop } from './harness.js';
import { InProcessBroker } from './in-process-broker.js';

let shop: Shop;
let broker: InProcessBroker;

beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());
beforeEach(async () => {
  broker = new InProcessBroker();
  await shop.empty();
});

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const failing = (error: Error) => () => Promise.reject(error);

/** What happens when the offsets of the group are lost or set back. */
async function again(records: number): Promise<void> {
  broker.committed.clear();
  await using running = await run(shop, broker);
  await offsetIs(running, records);
}

test('a record without an event id goes to the dead letters with what it was, and its neighbours are applied', async () => {
  broker.send(
    { id: 'a' },
    {
      type: 'OrderConfirmed',
      key: 'o-1',
      value: text('{"amountMinor":1990}'),
      headers: { 'content-type': 'application/json', traceparent: '00-a-b-01', 'x-tenant': 't-1', 'rs-attempt': '9' },
    },
    { id: 'b' },
  );
  await using running = await run(shop, broker);
  await offsetIs(running, 3);
  expect(await shop.effects()).toEqual(['a', 'b']);
  expect((await shop.processed()).map((row) => row.event_id)).toEqual(['a', 'b']);
  const [letter, ...others] = await shop.letters();
  expect(others).toEqual([]);
  expect(letter).toMatchObject({
    topic: 'orders.dead',
    type: 'OrderConfirmed',
    key: 'o-1',
    payload: Buffer.from('{"amountMinor":1990}'),
    content_type: 'application/json',
    headers: {
      traceparent: '00-a-b-01',
      'x-tenant': 't-1',
      'rs-origin': 'orders/0/1',
      'rs-consumer': 'billing',
      'rs-error-code': 'RS_INBOX_EVENT_ID_MISSING',
      'rs-attempt': '0',
    },
  });
  expect(letter?.headers).not.toHaveProperty('rs-origin-event-id');
  expect(running.diary.of('inbox.parked')).toMatchObject([{ eventId: '', reason: 'RS_INBOX_EVENT_ID_MISSING' }]);
});

test('a payload that is not JSON is parked under its id; its text is in no message', async () => {
  broker.send(
    { id: 'a', value: text('secret, not json'), headers: { 'content-type': 'application/json' } },
    { id: 'b', value: Uint8Array.of(0x22, 0xff, 0x22) },
    { id: 'c', value: Uint8Array.of(0, 255), headers: { 'content-type': 'application/octet-stream' } },
    { id: 'd', value: null },
  );
  await using running = await run(shop, broker);
  await offsetIs(running, 4);
  expect(await shop.effects()).toEqual(['c', 'd']);
  const parked = (await shop.processed()).filter((row) => row.status === 'parked');
  expect(parked.map((row) => [row.event_id, row.error_code])).toEqual([
    ['a', 'RS_INBOX_PAYLOAD_INVALID'],
    ['b', 'RS_INBOX_PAYLOAD_INVALID'],
  ]);
  expect(JSON.stringify(parked)).not.toContain('secret');
  const letters = await shop.letters();
  expect(letters.map((letter) => letter.payload)).toEqual([
    Buffer.from('secret, not json'),
    Buffer.of(0x22, 0xff, 0x22),
  ]);
  expect(JSON.stringify(letters.map((letter) => letter.headers))).not.toContain('secret');
});

test('a dead letter is written once, however often its record comes', async () => {
  broker.send({ value: text('1') }, { id: 'a', value: text('{') }, { id: 'b' }, { value: text('1') });
  {
    await using running = await run(shop, broker, { handle: failing(new Error('no')), maxAttempts: 1 });
    await offsetIs(running, 4);
  }
  const letters = await shop.letters();
  expect(letters.map((letter) => letter.headers['rs-error-code'])).toEqual([
    'RS_INBOX_EVENT_ID_MISSING',
    'RS_INBOX_PAYLOAD_INVALID',
    'RS_INBOX_ATTEMPTS_EXHAUSTED',
    'RS_INBOX_EVENT_ID_MISSING',
  ]);
  await again(4);
  await again(4);
  expect(await shop.letters()).toEqual(letters);
  expect(await shop.effects()).toEqual([]);
});

test('a crash after the park and before the offset: no second letter, and the parked event is not applied', async () => {
  broker.send({ id: 'a' }, { value: text('1') });
  {
    await using dying = await run(shop, broker, {
      handle: failing(new Error('no')),
      maxAttempts: 1,
      faults: { commit: () => 'fenced' },
    });
    await dying.diary.until(() => dying.diary.of('inbox.parked').length === 2);
  }
  await using restarted = await run(shop, broker);
  await offsetIs(restarted, 2);
  expect(await shop.effects()).toEqual([]);
  expect(await shop.letters()).toHaveLength(2);
});

test('an error text of a megabyte, with NUL and half a surrogate pair, is recorded', async () => {
  broker.send({ id: 'a', headers: { 'x-nul': 'a\0b' } });
  const error = new Error(`NUL \0 half \ud83d end ${'x'.repeat(1_000_000)}`);
  await using running = await run(shop, broker, { handle: failing(error), maxAttempts: 1 });
  await offsetIs(running, 1);
  const [row] = await shop.processed();
  expect(row?.error).toMatch(/^Error: NUL � half � end x+…$/);
  expect(row?.error?.length).toBeLessThanOrEqual(1_000);
  const [letter] = await shop.letters();
  expect(letter?.headers['rs-error']).toBe(row?.error);
  expect(letter?.headers['x-nul']).toBe('a�b');
});

test('the last attempt is not announced as one that is followed by another', async () => {
  broker.send({ id: 'a' });
  const lines: { message: string; attempt?: number; maxAttempts?: number }[] = [];
  const quiet = (): void => undefined;
  const warn = (fields: object, message: string): void => void lines.push({ ...fields, message });
  const logger = { debug: quiet, info: quiet, warn, error: quiet };
  await using running = await run(shop, broker, { handle: failing(new Error('no')), maxAttempts: 2, logger });
  await offsetIs(running, 1);
  expect(lines).toMatchObject([
    { message: 'a batch or an event failed and will be tried again', attempt: 1, maxAttempts: 2 },
    { message: 'an event failed in its last attempt', attempt: 2, maxAttempts: 2 },
  ]);
});

test('what is thrown need not be an error', async () => {
  broker.send({ id: 'a' }, { id: 'b' });
  const awkward = {
    toString: () => {
      throw new Error('no');
    },
  };
  const thrown = [undefined, awkward];
  await using running = await run(shop, broker, {
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the point of the test
    handle: (event) => Promise.reject(thrown[event.id === 'a' ? 0 : 1]),
    maxAttempts: 1,
  });
  await offsetIs(running, 2);
  expect((await shop.processed()).map((row) => row.error)).toEqual([
    'thrown: undefined',
    'an error that cannot be read',
  ]);
});

test('keys, types and headers that the outbox cannot hold do not stop the partition', async () => {
  const wild = {
    'Event-Id': 'foreign',
    ['x'.repeat(300)]: 'long name',
    'event-type': 'é'.repeat(200),
    'content-type': 'application/json',
    bin: Uint8Array.of(0xff, 0),
  };
  broker.send(
    { value: text('1'), key: Uint8Array.of(0, 0, 0, 7), headers: wild },
    { value: text('2'), key: '', headers: wild },
    { value: text('3'), key: 'k'.repeat(2_000) },
    { id: 'x'.repeat(256) },
    { id: 'nul\0' },
    { id: 'fine' },
  );
  await using running = await run(shop, broker);
  await offsetIs(running, 6);
  expect(await shop.effects()).toEqual(['fine']);
  const letters = await shop.letters();
  expect(letters).toHaveLength(5);
  expect(letters.map((letter) => letter.key)).toEqual([null, null, null, null, null]);
  expect(letters[0]?.headers).toMatchObject({ 'rs-origin-key': 'AAAABw', bin: '��' });
  expect(letters[0]?.type).toBe('é'.repeat(127));
});

test('a dead letter that cannot be written holds the partition, and nothing is passed over', async () => {
  broker.send({ value: text('1') }, { id: 'a' });
  await shop.pool.query('alter table replaysafe.outbox_event rename to outbox_gone');
  try {
    await using running = await run(shop, broker);
    await running.diary.until(() => running.diary.of('inbox.failed').length > 3);
    expect(broker.committed.size).toBe(0);
    await shop.pool.query('alter table replaysafe.outbox_gone rename to outbox_event');
    await offsetIs(running, 2);
  } finally {
    await shop.pool.query('alter table if exists replaysafe.outbox_gone rename to outbox_event');
  }
  expect(await shop.letters()).toHaveLength(1);
  expect(await shop.effects()).toEqual(['a']);
});

test('what a handler enqueues commits with its effect, or not at all', async () => {
  broker.send({ id: 'a' }, { id: 'b' });
  await using running = await run(shop, broker, {
    handle: async (event, ctx) => {
      await ctx.enqueue({ topic: 'charges', type: 'Charged', payload: { of: event.id } });
      if (event.id === 'b') throw new Error('after the enqueue');
    },
    maxAttempts: 2,
  });
  await offsetIs(running, 2);
  expect((await shop.letters()).map((letter) => letter.topic)).toEqual(['charges', 'orders.dead']);
});

test('a foreign producer’s id is mapped, and a mapping that throws is a record without one', async () => {
  broker.send({ key: 'k-1' }, { key: 'bad' }, { key: 'k-1' });
  await using running = await run(shop, broker, {
    eventId: (record) => {
      const key = Buffer.from(record.key ?? []).toString();
      if (key === 'bad') throw new Error('no id in it');
      return `foreign:${key}`;
    },
    deadLetterTopic: (topic) => `dlq.${topic}`,
  });
  await offsetIs(running, 3);
  expect(await shop.effects()).toEqual(['foreign:k-1']);
  expect(await shop.letters()).toMatchObject([{ topic: 'dlq.orders' }]);
});
