import { createHttpClient, type HttpClient, type HttpClientOptions } from '../../src/client/index.js';
import { onEvent, type EventName, type EventPayloads } from '../../src/events.js';
import { createFakeClock, type FakeClock } from '../../src/testing/index.js';
import { rawServer, type RawReaction, type RawServer } from './raw-server.js';

export interface Warned {
  readonly fields: object;
  readonly message: string;
}

export interface Harness {
  readonly server: RawServer;
  readonly client: HttpClient;
  readonly clock: FakeClock;
  readonly warnings: Warned[];
}

const opened: { close(): Promise<unknown> }[] = [];

/** A client on a clock that stands still, and a server on bare sockets. */
export async function harness(
  script: readonly RawReaction[],
  options: Partial<HttpClientOptions> = {},
): Promise<Harness> {
  const server = await rawServer(script);
  const clock = createFakeClock();
  const warnings: Warned[] = [];
  const nothing = (): void => undefined;
  const warn = (fields: object, message: string): void => void warnings.push({ fields, message });
  const client = createHttpClient({
    name: 'payments',
    baseUrl: server.url,
    clock,
    random: { next: () => 0.5 },
    logger: { debug: nothing, info: nothing, warn, error: nothing },
    ...options,
  });
  opened.push(server, { close: () => client.stop(AbortSignal.abort()) });
  return { server, client, clock, warnings };
}

export async function closeAll(): Promise<void> {
  for (const one of opened.splice(0).reverse()) await one.close();
}

/** What an event said until now; from its first call on. */
export function listen<Name extends EventName>(name: Name): EventPayloads[Name][] {
  const heard: EventPayloads[Name][] = [];
  const { unsubscribe } = onEvent(name, (payload) => heard.push(payload));
  opened.push({
    close: async () => {
      unsubscribe();
    },
  });
  return heard;
}

/** Resolves with the next event of this name. */
export function next<Name extends EventName>(name: Name): Promise<EventPayloads[Name]> {
  return new Promise((resolve) => {
    const { unsubscribe } = onEvent(name, (payload) => {
      unsubscribe();
      resolve(payload);
    });
  });
}

/** Lets time pass, little by little, until a call has ended. */
export async function through<T>(call: Promise<T>, clock: FakeClock): Promise<T> {
  const ended = failure(call).then(() => true);
  while (!(await Promise.race([ended, clock.advance(20).then(() => false)])));
  return call;
}

/** The error of a call that must fail, asked for before it has failed. */
export const failure = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );

/** Whether a promise is settled once the microtasks that are due have run: no timer and no I/O in between. */
export async function settledAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const mark = (): void => {
    settled = true;
  };
  promise.then(mark, mark);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  return settled;
}
