import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Cron } from 'croner';
import { expect, it } from 'vitest';
import { createLifecycle, installSignals } from '../../src/lifecycle/index.js';
import { pause, type Clock } from '../../src/ports/clock.js';
import { countingClock, leftovers, signalListeners } from './leftovers.js';
import { get, rawConnect } from './raw-client.js';

const ROUNDS = 200;

/** Everything a service registers; a worker of each kind has run, and one is running when the stop comes. */
async function liveAndStop(clock: Clock): Promise<void> {
  const lifecycle = createLifecycle({ clock, lameDuckMs: 0, quietMs: 0, lingerMs: 0 });
  const signals = installSignals(lifecycle);
  const server = lifecycle.server(createServer((_, response) => response.end('answer')));
  const { stopping, deadline } = lifecycle.signalsFor('work');
  let ran: () => void = () => undefined;
  const running = new Promise<void>((resolve) => (ran = resolve));

  lifecycle.worker({ name: 'waiting', everyMs: 60_000, run: async () => undefined }, { firstRun: 'later' });
  lifecycle.worker({
    name: 'running',
    everyMs: 1,
    run: async () => {
      ran();
      await pause(clock, 60_000, stopping);
    },
  });
  lifecycle.worker({ name: 'overlapping', everyMs: 1, run: () => pause(clock, 60_000, stopping) }, { overlap: 3 });
  lifecycle.worker({ name: 'nightly', cron: new Cron('0 3 * * *', { paused: true }), run: async () => undefined });
  lifecycle.relay({ name: 'relay', stop: (signal) => pause(clock, 1, signal) });
  lifecycle.consumer({ name: 'consumer', stop: () => pause(clock, 1, deadline) });
  lifecycle.producer({ name: 'producer', stop: async () => undefined });
  lifecycle.readiness('check', () => undefined);
  lifecycle.pool({ name: 'pool', end: () => Promise.resolve() });
  lifecycle.started();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = await rawConnect((server.address() as AddressInfo).port);
  client.send(get('/'));
  await client.sees('answer');
  await lifecycle.probe('ready');
  await running;
  expect((await lifecycle.stop()).exitCode).toBe(0);
  await client.ended;
  signals.uninstall();
  expect(signalListeners(lifecycle)).toBe(0);
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
    expect(before).toMatchObject({ timers: 0, subscribed: [] });
  },
);
