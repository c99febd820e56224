import { describe, expect, test } from 'vitest';
import { encodeEvent } from '../../src/outbox/event.js';
import type { OutboxEvent } from '../../src/ports/enqueue.js';

const EVENT: OutboxEvent = { topic: 'orders.confirmed', type: 'OrderConfirmed', payload: { amountMinor: 1990 } };
const ID = '0198f000-0000-7000-8000-0000000000AB';

test('an event without extras is JSON, without id, key and headers', () => {
  expect(encodeEvent(EVENT, 1)).toEqual({
    id: null,
    topic: 'orders.confirmed',
    type: 'OrderConfirmed',
    aggregateType: null,
    key: null,
    payload: Buffer.from('{"amountMinor":1990}'),
    contentType: 'application/json',
    headers: {},
    availableAt: null,
  });
});

test('bytes are sent as they are, a copy of them, through any view', () => {
  const bytes = new Uint8Array([9, 0, 255, 128, 9]);
  const row = encodeEvent({ ...EVENT, payload: bytes.subarray(1, 4) }, 1);
  bytes.fill(7);
  expect(row.payload).toEqual(Buffer.from([0, 255, 128]));
  expect(row.contentType).toBe('application/octet-stream');
  expect(encodeEvent({ ...EVENT, payload: new Uint16Array([513]).buffer }, 1).payload).toEqual(Buffer.from([1, 2]));
  expect(encodeEvent({ ...EVENT, payload: new DataView(new ArrayBuffer(2), 1) }, 1).payload).toEqual(Buffer.from([0]));
});

test('a null payload is a message without a value, any other is JSON', () => {
  expect(encodeEvent({ ...EVENT, payload: null }, 1)).toMatchObject({ payload: null, contentType: null });
  expect(encodeEvent({ ...EVENT, payload: 'text' }, 1).payload).toEqual(Buffer.from('"text"'));
  expect(encodeEvent({ ...EVENT, payload: false }, 1).payload).toEqual(Buffer.from('false'));
  expect(encodeEvent({ ...EVENT, payload: '\ud800' }, 1).payload).toEqual(Buffer.from('"\\ud800"'));
});

test('an id is stored in lower case, as the database and consumers see it', () => {
  expect(encodeEvent({ ...EVENT, id: ID }, 1).id).toBe(ID.toLowerCase());
});

test('a moment is stored in UTC', () => {
  const availableAt = new Date('2030-01-01T00:00:00.123+02:00');
  expect(encodeEvent({ ...EVENT, availableAt }, 1).availableAt).toBe('2029-12-31T22:00:00.123Z');
});

describe('refused with RS_OUTBOX_EVENT_INVALID, naming the event and the field, never the value', () => {
  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const cases: [string, Record<string, unknown> | null, RegExp][] = [
    ['no object', null, /event 3: is not an object/],
    ['a topic with a space', { topic: 'my topic' }, /topic must/],
    ['a topic of dots', { topic: '..' }, /topic must/],
    ['a topic of 250 characters', { topic: 't'.repeat(250) }, /topic must/],
    ['no type', { type: undefined }, /type must/],
    ['an empty type', { type: '' }, /type must/],
    ['a type with NUL', { type: 'secret\0' }, /type holds NUL/],
    ['a key with half a surrogate pair', { key: 'secret\ud800' }, /key holds NUL or half a surrogate pair/],
    ['an empty key', { key: '' }, /key must be a string of 1 to 1024 bytes/],
    ['a numeric key', { key: 7 }, /key must/],
    ['a key of 1,025 bytes', { key: 'ü'.repeat(512) + 'x' }, /key must/],
    ['an id that is no UUID', { id: 'secret-1' }, /id must be a UUID/],
    ['an unknown field', { aggregateId: 'secret' }, /unknown field "aggregateId"/],
    ['a header that is a number', { headers: { tenant: 7 } }, /header "tenant" must be a string/],
    ['a header that is undefined', { headers: { tenant: undefined } }, /header "tenant" must be a string/],
    ['a header with NUL', { headers: { tenant: 'secret\0' } }, /header "tenant" holds NUL/],
    ['a header without a name', { headers: { '': 'x' } }, /header name must/],
    ['a header of the relay', { headers: { 'Event-Id': 'secret' } }, /header "Event-Id" is written by the relay/],
    ['headers as a list', { headers: ['secret'] }, /headers must be an object/],
    ['an invalid date', { availableAt: new Date(Number.NaN) }, /availableAt must be a valid Date/],
    ['a date as a number', { availableAt: 7 }, /availableAt must be a valid Date/],
    ['a date that has no four-digit year', { availableAt: new Date(8.64e15) }, /availableAt must lie/],
    ['no payload', { payload: undefined }, /payload is undefined/],
    ['a function as payload', { payload: () => 1 }, /payload is function/],
    ['a bigint in the payload', { payload: { secret: 1n } }, /payload cannot be written as JSON/],
    ['a circular payload', { payload: circular }, /payload cannot be written as JSON/],
  ];
  test.each(cases)('%s', (_, change, complaint) => {
    const event = change === null ? (null as unknown as OutboxEvent) : { ...EVENT, ...change };
    const refusal = expect(() => encodeEvent(event, 3));
    refusal.toThrow(
      expect.objectContaining({
        code: 'RS_OUTBOX_EVENT_INVALID',
        message: expect.stringMatching(complaint) as unknown,
      }),
    );
    refusal.not.toThrow(/secret/);
  });

  test('a key of 1,024 bytes is taken', () => {
    expect(encodeEvent({ ...EVENT, key: 'ü'.repeat(512) }, 1).key).toHaveLength(512);
  });
});
