import { channel } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { EVENTS } from '../../src/events.js';
import { type Lifecycle } from '../../src/lifecycle/index.js';
import { systemClock, type Clock } from '../../src/ports/clock.js';

/** The system's clock, which knows its timers, also those that do not keep the process alive. */
export function countingClock() {
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

const CHANNELS = ['http.server.request.start', ...Object.keys(EVENTS).map((name) => `replaysafe:${name}`)];

/** Everything that a forgotten timer, socket or listener would show up in. */
export function leftovers(pending: ReadonlySet<object>) {
  const resources = process.getActiveResourcesInfo();
  const count = (matches: (kind: string) => boolean): number => resources.filter(matches).length;
  return {
    timers: pending.size,
    sockets: count((kind) => kind.startsWith('TCP')),
    // Child processes, workers, file watchers: whatever it is, there are no more of them than before.
    others: count((kind) => !kind.startsWith('TCP') && !['Timeout', 'Immediate', 'TickObject'].includes(kind)),
    processListeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    subscribed: CHANNELS.filter((name) => channel(name).hasSubscribers),
  };
}

/** Listeners that are left on the signals of a lifecycle. */
export function signalListeners(lifecycle: Lifecycle): number {
  const sources = [
    lifecycle.signals,
    ...(['http', 'work', 'consumers'] as const).map((phase) => lifecycle.signalsFor(phase)),
  ];
  const signals = new Set(sources.flatMap(({ stopping, deadline }) => [stopping, deadline]));
  return [...signals].reduce((sum, signal) => sum + getEventListeners(signal, 'abort').length, 0);
}
