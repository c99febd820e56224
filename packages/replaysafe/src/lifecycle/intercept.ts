import { type EventEmitter } from 'node:events';

// As Node's types have it: what is passed depends on the event.
type Handler = Parameters<EventEmitter['on']>[1];

/** Sends an event on to those who listened to it. */
export type PassOn = (...args: readonly unknown[]) => void;

/**
 * Takes the place of all listeners of an event. Node has no way to keep an event from the listeners behind one's own, and
 * for some events the mere presence of a listener changes what it does; so it is done only where there are listeners.
 *
 * @returns puts them back
 */
export function intercept(
  emitter: EventEmitter,
  event: string,
  handle: (passOn: PassOn, ...args: never[]) => void,
): () => void {
  const listeners = emitter.rawListeners(event) as Handler[];
  if (listeners.length === 0) return () => undefined;
  const passOn: PassOn = (...args) => {
    for (const listener of listeners) Reflect.apply(listener, emitter, args);
  };
  const own = (...args: unknown[]): void => {
    handle(passOn, ...(args as never[]));
  };
  emitter.removeAllListeners(event);
  emitter.on(event, own);
  return (): void => {
    emitter.removeListener(event, own);
    for (const listener of listeners) emitter.on(event, listener);
  };
}
