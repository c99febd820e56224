import { channel, subscribe, unsubscribe, type Channel } from 'node:diagnostics_channel';

/** What each event carries. Ids and counts only: no keys, no payloads, no header values. */
export interface EventPayloads {
  'migrate.applied': { readonly name: string };

  'outbox.enqueued': { readonly ids: readonly string[]; readonly topics: readonly string[] };
  'outbox.claimed': { readonly relay: string; readonly ids: readonly string[]; readonly mode: RelayModeName };
  'outbox.published': { readonly relay: string; readonly ids: readonly string[]; readonly durationMs: number };
  'outbox.marked': { readonly relay: string; readonly ids: readonly string[]; readonly mode: RelayModeName };
  'outbox.failed': { readonly relay: string; readonly ids: readonly string[]; readonly outcome: string };
  'outbox.dead': { readonly relay: string; readonly ids: readonly string[]; readonly reason: string };
  'outbox.fenced': { readonly relay: string; readonly count: number };
  'outbox.released': { readonly relay: string; readonly ids: readonly string[] };
  'outbox.recovered': { readonly relay: string; readonly ids: readonly string[] };
  'outbox.errored': { readonly relay: string; readonly error: unknown };

  'inbox.received': ConsumerBatch & { readonly count: number };
  'inbox.prepared': ConsumerBatch & { readonly eventIds: readonly string[] };
  'inbox.handled': ConsumerBatch & { readonly eventIds: readonly string[] };
  'inbox.committed': ConsumerBatch & { readonly eventIds: readonly string[]; readonly duplicates: number };
  'inbox.duplicate': ConsumerBatch & { readonly eventIds: readonly string[] };
  'inbox.parked': ConsumerBatch & { readonly eventId: string; readonly reason: string };
  'inbox.failed': ConsumerBatch & {
    readonly error: unknown;
    readonly attempt: number;
    readonly infrastructure: boolean;
  };
  'inbox.offset-committed': ConsumerBatch & { readonly nextOffset: bigint };

  'idempotency.executed': { readonly keyHash: string; readonly status: number };
  'idempotency.replayed': { readonly keyHash: string; readonly status: number };
  'idempotency.discarded': { readonly keyHash: string; readonly status: number };
  'idempotency.refused': { readonly keyHash: string | undefined; readonly code: string };
  'idempotency.waited': { readonly keyHash: string; readonly waitedMs: number };
  'idempotency.swept': { readonly expired: number; readonly deleted: number };

  'client.attempted': ClientCall & { readonly attempt: number };
  'client.answered': ClientCall & { readonly attempt: number; readonly status: number; readonly durationMs: number };
  'client.failed': ClientCall & { readonly attempt: number; readonly code: string };
  'client.backed-off': ClientCall & { readonly attempt: number; readonly delayMs: number };
  'client.refused': ClientCall & { readonly reason: 'breaker' | 'bulkhead' };
  'client.budget-spent': ClientCall & { readonly attempt: number };
  'client.breaker-changed': { readonly client: string; readonly from: string; readonly to: string };
  'client.key-misused': ClientCall & { readonly misuse: string };

  'task.enqueued': TaskEvent;
  'task.claimed': { readonly worker: string; readonly ids: readonly string[] };
  'task.succeeded': { readonly worker: string; readonly ids: readonly string[] };
  'task.failed': TaskEvent & { readonly worker: string; readonly attempt: number; readonly error: string };
  'task.given-up': TaskEvent & { readonly worker: string; readonly reason: string; readonly error: string };
  'task.released': { readonly worker: string; readonly ids: readonly string[] };
  'task.recovered': { readonly worker: string; readonly ids: readonly string[] };
  'task.fenced': { readonly worker: string; readonly count: number };
  'task.errored': { readonly worker: string; readonly error: unknown };

  'lifecycle.started': { readonly graceMs: number };
  'lifecycle.stop-requested': { readonly reason: string };
  'lifecycle.phase-started': { readonly phase: string };
  'lifecycle.phase-ended': { readonly phase: string; readonly durationMs: number; readonly forced: boolean };
  'lifecycle.resource-stopped': { readonly resource: string; readonly durationMs: number; readonly outcome: string };
  'lifecycle.http-drained': {
    readonly server: string;
    readonly requests: number;
    readonly refused: number;
    readonly cut: number;
    readonly timedOut: number;
    readonly lateAfterFin: number;
  };
  'lifecycle.worker-ran': { readonly worker: string; readonly durationMs: number; readonly error: unknown };
  'lifecycle.lease-taken': {
    readonly worker: string;
    readonly epoch: bigint;
    /** Another owner's run was begun and not ended. */
    readonly takenOver: boolean;
  };
  'lifecycle.lease-lost': { readonly worker: string; readonly epoch: bigint };
  'lifecycle.stopped': { readonly durationMs: number; readonly exitCode: number };
}

export type RelayModeName = 'single-phase' | 'two-phase';

interface ConsumerBatch {
  readonly consumer: string;
  readonly topic: string;
  readonly partition: number;
}

interface TaskEvent {
  readonly id: string;
  readonly kind: string;
}

interface ClientCall {
  readonly client: string;
  readonly method: string;
}

export type EventName = keyof EventPayloads;

interface EventEntry {
  /**
   * The step before this event is durable: committed, acknowledged by the broker, or answered by the remote system. A
   * process that is killed inside the event must lose nothing; each of these has a crash test.
   */
  readonly durable: boolean;
  readonly when: string;
}

/** The table of events. The channel of `outbox.marked` is `replaysafe:outbox.marked`. */
export const EVENTS: { readonly [Name in EventName]: EventEntry } = {
  'migrate.applied': durable('one numbered migration is committed'),

  'outbox.enqueued': passing('the rows are inserted; the caller has not committed them yet'),
  'outbox.claimed': durable('two-phase: the claim is committed; single-phase: the rows are locked'),
  'outbox.published': durable('the broker has answered for the batch'),
  'outbox.marked': durable('the published rows are marked and the mark is committed'),
  'outbox.failed': durable('a failed try is recorded and the row waits for its next one'),
  'outbox.dead': durable('the rows are given up on; they stay until redriven or dropped'),
  'outbox.fenced': passing('a mark was refused because another relay has claimed the rows since'),
  'outbox.released': durable('a graceful stop has given unpublished claims back'),
  'outbox.recovered': durable('claims of a dead relay are pending again'),
  'outbox.errored': passing('an iteration of the relay failed; it backs off and goes on'),

  'inbox.received': passing('a batch of one partition has arrived'),
  'inbox.prepared': passing('the remote calls before the transaction have answered'),
  'inbox.handled': passing('the handlers of the batch have ended; nothing is committed yet'),
  'inbox.committed': durable('the effects and their dedup rows are committed'),
  'inbox.duplicate': passing('events were dropped because their effect is committed already'),
  'inbox.parked': durable('an event is given up on and its dead letter is in the outbox'),
  'inbox.failed': passing('a batch or an event failed and will be tried again'),
  'inbox.offset-committed': durable('the broker has stored the next offset'),

  'idempotency.executed': durable('the effect and the answer are committed, the answer is not sent yet'),
  'idempotency.replayed': passing('a stored answer is about to be sent again'),
  'idempotency.discarded': passing('the handler ran, its answer is not one that is stored'),
  'idempotency.refused': passing('the request was answered with a problem and not executed'),
  'idempotency.waited': passing('a duplicate waited for the first request to end'),
  'idempotency.swept': passing('a batch of old answers is forgotten, or of old keys deleted'),

  'client.attempted': passing('a try is about to be sent'),
  'client.answered': durable('the remote system has answered'),
  'client.failed': passing('a try ended without an answer'),
  'client.backed-off': passing('the call waits before its next try'),
  'client.refused': passing('a try was not sent: open breaker, or too many calls'),
  'client.budget-spent': passing('a try was not repeated because the retry budget is spent'),
  'client.breaker-changed': passing('the circuit breaker opened, half-opened or closed'),
  'client.key-misused': passing('one object has two keys, or one key two requests'),

  'task.enqueued': passing('the row is inserted; the caller has not committed it yet'),
  'task.claimed': durable('the claim is committed; the handlers have not begun'),
  'task.succeeded': durable('the results are committed'),
  'task.failed': durable('a failed try is recorded and the task waits for its next one'),
  'task.given-up': durable('a task is FAILED; it stays until redriven'),
  'task.released': durable('a graceful stop has given tasks back'),
  'task.recovered': durable('claims of a dead worker have been ended'),
  'task.fenced': passing('the end of a try was refused because another worker has claimed the task since'),
  'task.errored': passing('an iteration of the worker failed; it backs off and goes on'),

  'lifecycle.started': passing('the service is ready'),
  'lifecycle.stop-requested': passing('a signal or a call has begun the stop'),
  'lifecycle.phase-started': passing('a phase of the stop begins'),
  'lifecycle.phase-ended': durable('a phase of the stop has ended'),
  'lifecycle.resource-stopped': passing('a resource has stopped, failed or been abandoned'),
  'lifecycle.http-drained': passing('the last connection of a server is closed'),
  'lifecycle.worker-ran': passing('an iteration of a worker has ended'),
  'lifecycle.lease-taken': passing('a worker that runs once over all processes has begun an iteration here'),
  'lifecycle.lease-lost': passing('the lease of a running iteration ran out or was taken over'),
  'lifecycle.stopped': passing('the stop is complete'),
};

const CHANNEL_PREFIX = 'replaysafe:';

const channels = Object.fromEntries(
  Object.keys(EVENTS).map((name) => [name, channel(CHANNEL_PREFIX + name)]),
) as unknown as Record<EventName, Channel>;

/** Publishes an event to its channel. Subscribers run synchronously, before the next statement of the caller. */
export function emit<Name extends EventName>(name: Name, payload: EventPayloads[Name]): void {
  const target = channels[name];
  if (target.hasSubscribers) target.publish(payload);
}

/** For places where making the payload costs more than it may. */
export function hasListeners(name: EventName): boolean {
  return channels[name].hasSubscribers;
}

/** Subscribes to an event. A subscriber that throws is reported by Node as an uncaught exception, as for any channel. */
export function onEvent<Name extends EventName>(
  name: Name,
  listener: (payload: EventPayloads[Name]) => void,
): { readonly unsubscribe: () => void } {
  const receive = (message: unknown): void => {
    listener(message as EventPayloads[Name]);
  };
  subscribe(CHANNEL_PREFIX + name, receive);
  return {
    unsubscribe: () => {
      unsubscribe(CHANNEL_PREFIX + name, receive);
    },
  };
}

function durable(when: string): EventEntry {
  return { durable: true, when };
}

function passing(when: string): EventEntry {
  return { durable: false, when };
}
