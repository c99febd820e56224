import { hasCode, ReplaysafeError } from '../../errors.js';
import type { SubscribeOptions, SubscriberHealth } from '../../ports/broker.js';
import { deadlineAfter, pause } from '../../ports/clock.js';
import { backoffDelay } from '../../retry/backoff.js';
import { describeFailure, isRefusedAccess, isTopicFault } from './kafkajs-failure.js';
import { Membership, type MembershipSettings } from './kafkajs-membership.js';
import { clientIdOf, nameInClientId, openKafka } from './kafkajs-options.js';
import type { KafkajsAdmin, KafkajsClient, KafkajsSource } from './kafkajs-types.js';
import { until } from './until.js';

const RETRY = { retries: 2, initialRetryTime: 100, maxRetryTime: 1_000, multiplier: 2 };
/** Longest wait for a broken membership to close, in milliseconds, before the next one is tried. */
const CLOSE_WAIT_MS = 10_000;
const ADMIN_CLOSE_WAIT_MS = 1_000;

/** Which groups run on which Kafka instance: two members of a group on one would overwrite each other's offsets inside kafkajs. */
const groupsOf = new WeakMap<KafkajsClient, Set<string>>();

/** From one start to its stop: one membership after another, with a back-off in between. */
export class SubscriberLife {
  readonly #source: KafkajsSource;
  readonly #consumer: string;
  readonly #subscription: SubscribeOptions;
  readonly #settings: MembershipSettings;
  readonly #stopping = new AbortController();
  readonly #loop: Promise<void>;
  #membership: Membership | undefined;
  #everJoined = false;
  #done = false;
  #attempt = 0;

  /** Resolves when the group is joined for the first time, or when the life ends before. */
  readonly joined: Promise<void>;

  constructor(
    source: KafkajsSource,
    consumer: string | undefined,
    subscription: SubscribeOptions,
    settings: MembershipSettings,
  ) {
    this.#source = source;
    this.#consumer = consumer ?? subscription.group;
    this.#subscription = subscription;
    this.#settings = settings;
    const { promise, resolve, reject } = withResolvers();
    this.joined = promise;
    this.#loop = this.#run(resolve).then(resolve, reject);
  }

  health(): SubscriberHealth {
    const membership = this.#membership;
    const halted = membership?.halted ?? [];
    return {
      state: this.#done ? 'stopped' : membership?.joined ? 'joined' : 'joining',
      sinceHeartbeatMs: membership?.sinceHeartbeatMs,
      ...(halted.length > 0 && { halted }),
    };
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopping.abort(new Error('the subscriber stops'));
    this.#membership?.revoke();
    const left = await until(this.#loop, deadline);
    if (left.aborted) this.#membership?.lose('the deadline of the stop has passed');
  }

  async #run(onJoined: () => void): Promise<void> {
    const { clock, random, backoff, logger } = this.#settings;
    try {
      while (!this.#stopping.signal.aborted) {
        this.#attempt++;
        try {
          await this.#beMember(onJoined);
        } catch (error) {
          if (!this.#everJoined) throwIfHopeless(error);
          const { reason } = describeFailure(error);
          const { group } = this.#subscription;
          logger.warn({ group, attempt: this.#attempt, reason }, 'not in the consumer group; trying again');
        }
        const delayMs = backoffDelay({ attempt: this.#attempt, ...backoff, random });
        await pause(clock, delayMs, this.#stopping.signal);
      }
    } finally {
      this.#done = true;
    }
  }

  /** One membership from its connection to its end. Rejects when it ended by itself. */
  async #beMember(onJoined: () => void): Promise<void> {
    const stopping = this.#stopping.signal;
    const { group, topics } = this.#subscription;
    const kafka = openKafka(this.#source, clientIdOf(this.#consumer));
    claim(kafka, group);
    const admin = kafka.admin({ retry: RETRY });
    const opening = admin.connect();
    let membership: Membership | undefined;
    try {
      if ((await until(opening, stopping)).aborted) return;
      if ((await until(this.#check(admin, group, topics), stopping)).aborted) return;
      membership = this.#membership = new Membership(kafka, admin, this.#subscription, this.#settings);
      await membership.join(stopping);
      if (!stopping.aborted && !membership.over.aborted) {
        this.#everJoined = true;
        this.#attempt = 0;
        onJoined();
        await aborted(AbortSignal.any([stopping, membership.over]));
      }
      if (!stopping.aborted) throw membership.over.reason;
    } finally {
      if (membership) await this.#close(membership);
      await this.#closeAdmin(admin, opening);
      groupsOf.get(kafka)?.delete(group);
    }
  }

  async #check(admin: KafkajsAdmin, group: string, topics: readonly string[]): Promise<void> {
    for (const topic of topics) {
      try {
        await admin.fetchTopicMetadata({ topics: [topic] });
      } catch (error) {
        const failure = describeFailure(error);
        if (!isTopicFault(failure)) throw error;
        const detail = `${topic} (${failure.type ?? ''})`;
        throw new ReplaysafeError('RS_BROKER_TOPIC_MISSING', { detail, cause: error });
      }
    }
    const { groups } = await admin.describeGroups([group]);
    const names = groups.flatMap(({ members }) => members.map(({ clientId }) => nameInClientId(clientId)));
    const other = names.find((name) => name !== undefined && name !== this.#consumer);
    if (other === undefined) return;
    // Each of the two would get a part of the records, and take it for all of them.
    const detail = `group ${group} is used by the consumer "${other}" as well as by "${this.#consumer}"`;
    throw new ReplaysafeError('RS_BROKER_UNSAFE_SETTING', { detail });
  }

  async #close(membership: Membership): Promise<void> {
    const closing = membership.close();
    if (this.#stopping.signal.aborted) {
      await closing;
      return;
    }
    const limit = deadlineAfter(this.#settings.clock, CLOSE_WAIT_MS);
    await until(closing, limit.signal);
    limit.dispose();
    // A partition may come back with the next membership: its old handler must be gone by then.
    await membership.handlersEnded();
  }

  async #closeAdmin(admin: KafkajsAdmin, opening: Promise<void>): Promise<void> {
    const disconnect = (): Promise<void> => admin.disconnect();
    const closing = opening.then(disconnect, disconnect).catch(() => undefined);
    const limit = deadlineAfter(this.#settings.clock, ADMIN_CLOSE_WAIT_MS);
    await until(closing, limit.signal);
    limit.dispose();
  }
}

/** @throws RS_BROKER_UNSAFE_SETTING */
function claim(kafka: KafkajsClient, group: string): void {
  const groups = groupsOf.get(kafka) ?? new Set();
  if (groups.has(group)) {
    throw new ReplaysafeError('RS_BROKER_UNSAFE_SETTING', {
      detail: `two subscribers of group ${group} share a Kafka instance; give each its own, or a function`,
    });
  }
  groupsOf.set(kafka, groups.add(group));
}

/** What waiting cannot heal. */
function throwIfHopeless(error: unknown): void {
  if (hasCode(error, 'RS_BROKER_TOPIC_MISSING', 'RS_BROKER_UNSAFE_SETTING')) throw error;
  const { type, reason } = describeFailure(error);
  if (type === 'INVALID_SESSION_TIMEOUT') {
    throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `sessionTimeoutMs: ${reason}`, cause: error });
  }
  if (isRefusedAccess(error)) throw new ReplaysafeError('RS_BROKER_UNAVAILABLE', { detail: reason, cause: error });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else
      signal.addEventListener(
        'abort',
        () => {
          resolve();
        },
        { once: true },
      );
  });
}

function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let resolve!: () => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<void>((succeed, fail) => {
    resolve = succeed;
    reject = fail;
  });
  return { promise, resolve, reject };
}
