import { ReplaysafeError } from '../../src/errors.js';
import { expect, test } from 'vitest';
import { errorText, firstBytes, storableText } from '../../src/inbox/error-text.js';
import { eventIdHeader, exactText, readRecord } from '../../src/inbox/event.js';
import { attemptBook, readItems, runFrom, type Item } from '../../src/inbox/item.js';
import type { ReceivedRecord } from '../../src/ports/broker.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const reading = { eventId: eventIdHeader, defaultContentType: 'application/json' };

function record(given: Partial<ReceivedRecord> & { readonly id?: string } = {}): ReceivedRecord {
  const { id, headers, ...rest } = given;
  return {
    topic: 'orders',
    partition: 0,
    offset: 0n,
    key: null,
    value: encode('{}'),
    timestamp: 0,
    ...rest,
    headers: { ...(id === undefined ? {} : { 'event-id': encode(id) }), ...headers },
  };
}

test.each([
  ['none', undefined],
  ['empty', ''],
  ['too long', 'x'.repeat(256)],
  ['NUL', 'a\0'],
])('an id that is %s is no id', (_name, id) => {
  expect(readRecord(record(id === undefined ? {} : { id }), reading)).toMatchObject({
    kind: 'unusable',
    id: undefined,
    code: 'RS_INBOX_EVENT_ID_MISSING',
  });
});

test.each(['a', 'x'.repeat(255), '0190-é', '😀'])('%s is an id', (id) => {
  expect(readRecord(record({ id }), reading)).toMatchObject({ kind: 'event', id });
});

test('half a surrogate pair from a mapping is no id', () => {
  expect(readRecord(record(), { ...reading, eventId: () => '\ud83d' })).toMatchObject({ kind: 'unusable' });
  expect(readRecord(record(), { ...reading, eventId: () => 7 as never })).toMatchObject({ kind: 'unusable' });
});

const typed = (contentType: string | undefined, value: string) =>
  record({
    id: 'a',
    value: encode(value),
    ...(contentType === undefined ? {} : { headers: { 'content-type': encode(contentType) } }),
  });

test.each([
  'application/json',
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/cloudevents+json',
  ' application/json ',
  undefined,
])('%s is read as JSON', (contentType) => {
  expect(readRecord(typed(contentType, '\ufeff{"a":1}'), reading)).toMatchObject({ event: { payload: { a: 1 } } });
  expect(readRecord(typed(contentType, '{'), reading)).toMatchObject({ code: 'RS_INBOX_PAYLOAD_INVALID', id: 'a' });
});

test.each(['application/octet-stream', 'text/plain', 'application/jsonlines', 'avro/json'])(
  '%s is handed over as bytes',
  (contentType) => {
    expect(readRecord(typed(contentType, '{'), reading)).toMatchObject({ event: { payload: encode('{') } });
  },
);

test('a header called __proto__ is a header', () => {
  const headers = Object.fromEntries([['__proto__', encode('x')]]);
  const read = readRecord(record({ id: 'a', headers }), reading);
  expect(read.kind === 'event' && Object.keys(read.event.headers).sort()).toEqual(['__proto__', 'event-id']);
});

test('text is told from bytes', () => {
  expect(exactText(encode('é\ufeff'))).toBe('é\ufeff');
  expect(exactText(Uint8Array.of(0xff))).toBeUndefined();
  expect(exactText(Uint8Array.of(65, 0))).toBeUndefined();
});

test('an error text fits any column, whatever it was', () => {
  expect(storableText('a\0b\ud83dc\u0007')).toBe('a�b�c�');
  expect(storableText('line\nline\ttab 😀')).toBe('line\nline\ttab 😀');
  expect(storableText('😀'.repeat(1_000))).toHaveLength(1_000);
  expect(storableText('😀'.repeat(1_000))).not.toMatch(/\p{Surrogate}/u);
  const state = Object.assign(new Error('duplicate key'), { code: '23505', severity: 'ERROR' });
  expect(errorText(state)).toBe('Error: [23505] duplicate key');
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:5432');
  const unreachable = (cause: Error) => errorText(new ReplaysafeError('RS_SQL_UNAVAILABLE', { cause }));
  const said = 'ReplaysafeError: the database cannot be reached: connect ECONNREFUSED 127.0.0.1:5432';
  expect(unreachable(refused)).toBe(said);
  expect(unreachable(new AggregateError([refused]))).toBe(said);
  expect(unreachable(new Error('x'.repeat(5_000)))).toHaveLength(1_000);
  const quoting = new SyntaxError('Unexpected token, "secret" is not valid JSON');
  expect(errorText(new Error('unreadable', { cause: quoting }))).toBe('Error: unreadable');
  const awkward = Object.defineProperty(new Error('x'), 'message', {
    get: () => {
      throw new Error('no');
    },
  });
  expect(errorText(awkward)).toBe('an error that cannot be read');
  expect(firstBytes('aé😀', 8)).toBe('aé😀');
  expect(firstBytes('aé😀', 6)).toBe('aé');
  expect(firstBytes('aé😀', 2)).toBe('a');
});

const named = (text: string): Item[] => {
  const records = Array.from(text, (id, offset) => record({ id, offset: BigInt(offset) }));
  return readItems(records, reading, attemptBook());
};

test('the first of several records with one id stands for all', () => {
  expect(named('abac').map((item) => item.duplicate)).toEqual([false, false, true, false]);
});

test('a run ends before what is given up and before what wants to be alone', () => {
  const items = named('abcdef');
  expect(runFrom(items, 0, 6)).toHaveLength(6);
  expect(runFrom(items, 0, 2)).toHaveLength(2);
  items[3]!.alone = true;
  expect(runFrom(items, 0, 6)).toHaveLength(3);
  expect(runFrom(items, 3, 6)).toEqual([items[3]]);
  items[5]!.surrender = { code: 'x', error: undefined };
  expect(runFrom(items, 4, 6)).toEqual([items[4]]);
});

test('attempts are kept by place and forgotten when settled', () => {
  const book = attemptBook();
  book.set(record({ offset: 7n }), 3);
  expect(book.of(record({ offset: 7n }))).toBe(3);
  expect(book.of(record({ offset: 8n }))).toBe(0);
  book.forget(record({ offset: 7n }));
  expect(book.of(record({ offset: 7n }))).toBe(0);
});
