import type { Dispatcher } from 'undici';
import { expect, test } from 'vitest';
import { Exchange } from '../../src/client/exchange.js';
import { createFakeClock } from '../../src/testing/index.js';

function setUp() {
  const told: string[] = [];
  const exchange = new Exchange(
    {
      ended: ({ failure }) => told.push(failure === undefined ? 'answered' : failure.message),
      released: () => told.push('released'),
    },
    createFakeClock(),
  );
  const controller = (): Dispatcher.DispatchController => ({
    aborted: false,
    paused: false,
    reason: null,
    // As the pool does it: the error comes back in the same tick.
    abort: (reason) => {
      exchange.onResponseError(controller(), reason);
    },
    pause: () => undefined,
    resume: () => undefined,
  });
  return { told, exchange, controller };
}

test('POST replayed by the pool: a request that was on a connection is not put on a second one', () => {
  const { told, exchange, controller } = setUp();
  exchange.onRequestStart(controller());
  exchange.onRequestStart(controller());
  expect(told).toEqual(['the connection was lost with the request on it', 'released']);
  expect(exchange.sent).toBe(true);
});

test('given up before it has a connection: the outcome is known at once, the slot is free when the pool lets go', () => {
  const { told, exchange, controller } = setUp();
  exchange.abort(new Error('given up'));
  exchange.abort(new Error('again'));
  expect(told).toEqual(['given up']);
  exchange.onRequestStart(controller());
  expect(told).toEqual(['given up', 'released']);
  expect(exchange.sent).toBe(false);
});

test('given up on its connection: in the same tick, once', () => {
  const { told, exchange, controller } = setUp();
  exchange.onRequestStart(controller());
  exchange.abort(new Error('given up'));
  exchange.abort(new Error('again'));
  expect(told).toEqual(['given up', 'released']);
});

test('given up behind its answer: nothing happens', () => {
  const { told, exchange, controller } = setUp();
  exchange.onRequestStart(controller());
  exchange.onResponseStart(controller(), 200, {});
  exchange.onResponseEnd();
  exchange.abort(new Error('too late'));
  expect(told).toEqual(['answered', 'released']);
});
