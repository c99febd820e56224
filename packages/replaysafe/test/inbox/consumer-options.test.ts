import { expect, test } from 'vitest';
import { createConsumer } from '../../src/inbox/index.js';

const port = { query: () => undefined, transaction: () => undefined, join: () => undefined };
const subscriber = { start: () => undefined, stop: () => undefined, health: () => undefined };
const valid = {
  sql: port,
  subscriber,
  consumer: 'billing',
  topics: ['orders'],
  handle: () => Promise.resolve(),
  outbox: { enqueue: () => undefined },
};
const create = (change: object) => () => createConsumer({ ...valid, ...change } as never);

test('what is needed suffices', () => {
  expect(create({})().name).toBe('consumer:billing');
  expect(create({ prepare: () => undefined, retryBackoff: { capMs: 5 }, group: 'g' })).not.toThrow();
});

test.each([
  [{ consumer: undefined }, 'RS_OPTION_REQUIRED', /consumer/],
  [{ handle: undefined }, 'RS_OPTION_REQUIRED', /handle/],
  [{ sql: { connect: port.join, query: port.query } }, 'RS_OPTION_INVALID', /fromPg\(pool\)/],
  [{ consumer: '' }, 'RS_OPTION_INVALID', /consumer/],
  [{ consumer: 'a b' }, 'RS_OPTION_INVALID', /consumer/],
  [{ topics: [] }, 'RS_OPTION_INVALID', /topics/],
  [{ topics: 'orders' }, 'RS_OPTION_INVALID', /topics/],
  [{ maxAttempts: 0 }, 'RS_OPTION_INVALID', /maxAttempts/],
  [{ retryBackoff: { baseMS: 1 } }, 'RS_OPTION_INVALID', /baseMs and capMs/],
  [{ retryBackoff: { baseMs: -1 } }, 'RS_OPTION_INVALID', /retryBackoff/],
  [{ schema: 'x"; drop' }, 'RS_OPTION_INVALID', /schema/],
  [{ signals: {} }, 'RS_OPTION_INVALID', /signals/],
  [{ handel: 1 }, 'RS_OPTION_UNKNOWN', /did you mean "handle"/],
])('%j is refused: %s', (change, code, message) => {
  expect(create(change)).toThrow(
    expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error,
  );
});

test('a consumer that is stopped while it joins does not say that it has started', async () => {
  const messages: string[] = [];
  const tell = (_: object, message: string): void => void messages.push(message);
  let joined = (): void => undefined;
  let joining = (): void => undefined;
  const asked = new Promise<void>((resolve) => (joining = resolve));
  const slow = {
    ...subscriber,
    start: () => {
      joining();
      return new Promise<void>((resolve) => (joined = resolve));
    },
    stop: async () => {
      joined();
    },
  };
  const sql = { ...port, query: async () => ({ rows: [{ present: true }], rowCount: 1 }) };
  const consumer = create({ sql, subscriber: slow, logger: { debug: tell, info: tell, warn: tell, error: tell } })();
  const started = consumer.start();
  await asked;
  await consumer.stop();
  await started;
  expect(messages).toEqual(['the consumer has stopped']);
});

test('no outbox is refused, unless the stall is said aloud', () => {
  expect(create({ outbox: undefined })).toThrow(/outbox is required.*deadLetters: 'stall'/);
  expect(create({ outbox: undefined, deadLetters: 'stall' })).not.toThrow();
});

test('stop before start is harmless', async () => {
  await create({})().stop();
});
