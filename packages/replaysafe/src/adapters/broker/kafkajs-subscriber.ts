import { ReplaysafeError } from '../../errors.js';
import { custom, integer, optional, parseOptions, port, text } from '../../options.js';
import type { SubscribeOptions, Subscriber } from '../../ports/broker.js';
import { deadlineAfter, systemClock, type Clock } from '../../ports/clock.js';
import { silentLogger, type Logger } from '../../ports/logger.js';
import { systemRandom, type Random } from '../../ports/random.js';
import type { Resource } from '../../ports/stop.js';
import { SubscriberLife } from './kafkajs-life.js';
import type { MembershipSettings } from './kafkajs-membership.js';
import { kafkaSource, onlySafe } from './kafkajs-options.js';
import type { KafkajsSource } from './kafkajs-types.js';

export interface KafkajsSubscriberOptions {
  /**
   * With a function, each member gets a client id `replaysafe:<consumer>:<instance>` and a `Kafka` of its own. Two running
   * subscribers of one group never share an instance: kafkajs keeps a group's offsets there.
   */
  readonly kafka: KafkajsSource;
  /** Name of the resource. Default `kafkajs-subscriber`. */
  readonly name?: string;
  /** The consumer's name in the client id; the start is refused where a live member of the group announces another. Default: the group. */
  readonly consumer?: string;
  /** After so long without a heartbeat the group gives a member's partitions away, in milliseconds. Default 10000. */
  readonly sessionTimeoutMs?: number;
  /** Between two heartbeats, in milliseconds. Default: a third of the session, at most 3000. */
  readonly heartbeatMs?: number;
  /** How long the group waits for running handlers in a rebalance, in milliseconds. Default 60000. */
  readonly rebalanceTimeoutMs?: number;
  /** Longest wait of a fetch for new records, in milliseconds: bounds the idle rate, and how long a stop or a start waits. Default 250. */
  readonly fetchWaitMs?: number;
  /** Most bytes of one partition in a fetch. Default 1 MiB. */
  readonly maxBytesPerPartition?: number;
  /** Handlers at the same time, each of another partition. Default 4. */
  readonly partitionsInParallel?: number;
  /** Longest wait for the answer to a commit, in milliseconds; then it is `retriable`. Default 5000. */
  readonly commitTimeoutMs?: number;
  /** Waits between two deliveries of a refused batch, and between two tries to reach the broker, in milliseconds. Default 200 and 10000. */
  readonly backoffBaseMs?: number;
  readonly backoffCapMs?: number;
  /** Only false: offsets are committed after their effects, by the caller. */
  readonly autoCommit?: false;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

export type KafkajsSubscriber = Subscriber & Resource & AsyncDisposable;

const table = {
  kafka: kafkaSource,
  name: text({ default: 'kafkajs-subscriber' }),
  consumer: optional(text()),
  sessionTimeoutMs: integer({ default: 10_000, min: 100 }),
  heartbeatMs: optional(integer({ min: 10 })),
  rebalanceTimeoutMs: integer({ default: 60_000, min: 100 }),
  fetchWaitMs: integer({ default: 250, min: 1 }),
  maxBytesPerPartition: integer({ default: 1_048_576, min: 1_024 }),
  partitionsInParallel: integer({ default: 4, min: 1, max: 1_024 }),
  commitTimeoutMs: integer({ default: 5_000, min: 1 }),
  backoffBaseMs: integer({ default: 200, min: 1 }),
  backoffCapMs: integer({ default: 10_000, min: 1 }),
  autoCommit: onlySafe('autoCommit', [false], 'it commits offsets whose effects are not durable'),
  logger: port<Logger>(['debug', 'info', 'warn', 'error'], silentLogger),
  clock: port<Clock>(['monotonicMs', 'setTimer'], systemClock),
  random: port<Random>(['next'], systemRandom),
};

const subscription = {
  group: text(),
  topics: custom<readonly string[]>((given) =>
    Array.isArray(given) && given.length > 0 && given.every((topic) => typeof topic === 'string' && topic !== '')
      ? undefined
      : 'must be a list of topic names that is not empty',
  ),
  start: custom<'earliest' | 'latest'>(
    (given) => (given === 'earliest' || given === 'latest' ? undefined : 'must be earliest or latest'),
    'earliest',
  ),
  maxBatch: integer({ min: 1 }),
  onBatch: custom<SubscribeOptions['onBatch']>((given) =>
    typeof given === 'function' ? undefined : 'must be a function',
  ),
};

const CLOSE_WAIT_MS = 10_000;

/**
 * A subscriber on kafkajs. `start` keeps trying, with a warning for each try, while the broker cannot be reached, and resolves
 * when the group is joined or when `stop` ended the attempt; later failures heal by themselves. Wrong credentials, a missing topic
 * and unsafe settings reject the start.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_REQUIRED, RS_OPTION_INVALID, RS_BROKER_UNSAFE_SETTING
 */
export function kafkajsSubscriber(given: KafkajsSubscriberOptions): KafkajsSubscriber {
  const options = parseOptions('kafkajsSubscriber', table, given);
  const heartbeatMs = options.heartbeatMs ?? Math.min(3_000, Math.floor(options.sessionTimeoutMs / 3));
  if (heartbeatMs >= options.sessionTimeoutMs) {
    throw new ReplaysafeError('RS_OPTION_INVALID', {
      detail: 'kafkajsSubscriber: heartbeatMs must be less than sessionTimeoutMs',
    });
  }
  const backoff = { baseMs: options.backoffBaseMs, capMs: options.backoffCapMs };
  const settings: MembershipSettings = { ...options, heartbeatMs, backoff };
  let life: SubscriberLife | undefined;

  const subscriber: KafkajsSubscriber = {
    name: options.name,

    start: async (wanted) => {
      const parsed = parseOptions('kafkajsSubscriber.start', subscription, wanted);
      life ??= new SubscriberLife(options.kafka, options.consumer, parsed, settings);
      await life.joined;
    },

    stop: async (deadline) => {
      const ending = life;
      await ending?.stop(deadline);
      if (life === ending) life = undefined;
    },

    health: () => life?.health() ?? { state: 'stopped', sinceHeartbeatMs: undefined },

    [Symbol.asyncDispose]: async () => {
      const limit = deadlineAfter(options.clock, CLOSE_WAIT_MS);
      await subscriber.stop(limit.signal);
      limit.dispose();
    },
  };
  return subscriber;
}
