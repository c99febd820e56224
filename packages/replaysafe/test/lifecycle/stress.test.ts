import { channel } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';
import { systemClock, type Clock } from '../../src/ports/clock.js';
import { get, rawConnect } from './raw-client.js';

const ROUNDS = 200;
const SIGNALS = ['SIGTERM', 'SIGINT', 'uncaughtException', 'unhandledRejection'];

/** The system's clock, which knows its timers, also those that do not keep the process alive. */
function countingClock() {
  const pending = new Set<object>();
  const clock: Clock = {
    ...systemClock,
    setTimer: (delayMs, fire, options) => {
      const key = {};
      pending.add(key);
      const timer = systemClock.setTimer(
        delayMs,
        () => {
          pending.delete(key);
          fire();
        },
        options,
      );
      return {
        cancel: () => {
          pending.delete(key);
          timer.cancel();
        },
      };
    },
  };
  return { clock, pending };
}

/** Everything that a forgotten timer, socket or listener would show up in. */
function leftovers(pending: ReadonlySet<object>) {
  const resources = process.getActiveResourcesInfo();
  return {
    timers: pending.size,
    sockets: resources.filter((kind) => kind.startsWith('TCP')).length,
    signalListeners: SIGNALS.map((event) => process.listenerCount(event)),
    requestSubscribers: channel('http.server.request.start').hasSubscribers,
  };
}

async function liveAndStop(clock: Clock): Promise<void> {
  const lifecycle = createLifecycle({ clock, lameDuckMs: 0, quietMs: 0, lingerMs: 0 });
  const signals = installSignals(lifecycle);
  const server = lifecycle.server(createServer((_, response) => response.end('answer')));
  lifecycle.worker({ name: 'worker', everyMs: 60_000, run: () => Promise.resolve() });
  lifecycle.readiness('check', () => undefined);
  lifecycle.pool({ name: 'pool', end: () => Promise.resolve() });
  lifecycle.started();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = await rawConnect((server.address() as AddressInfo).port);
  client.send(get('/'));
  await client.sees('answer');
  await lifecycle.probe('ready');
  expect((await lifecycle.stop()).exitCode).toBe(0);
  await client.ended;
  signals.uninstall();
  expect(server.eventNames().map((event) => server.listenerCount(event))).toEqual(
    new Array(server.eventNames().length).fill(1),
  );
}

it(
  `leaves no timer, socket or listener behind when it is started and stopped ${ROUNDS} times`,
  { timeout: 60_000 },
  async () => {
    const { clock, pending } = countingClock();
    await liveAndStop(clock);
    const before = leftovers(pending);
    for (let round = 0; round < ROUNDS; round++) await liveAndStop(clock);
    await new Promise((resolve) => setImmediate(resolve));
    expect(leftovers(pending)).toEqual(before);
    expect(before).toMatchObject({ timers: 0, requestSubscribers: false });
  },
);
