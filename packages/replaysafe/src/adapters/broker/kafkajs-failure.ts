import type { PublishOutcome } from '../../ports/broker.js';

/** What kafkajs tells about an error, from the bottom of its chain of causes. */
export interface KafkajsFailure {
  /** Kafka's name for it, such as `MESSAGE_TOO_LARGE`; undefined when no broker answered. */
  readonly type: string | undefined;
  readonly reason: string;
}

/** kafkajs wraps: retries exceeded -> non-retriable -> the broker's answer. The innermost one that carries a type counts. */
export function describeFailure(error: unknown): KafkajsFailure {
  let type: string | undefined;
  let deepest: unknown = error;
  for (let depth = 0, current = error; current instanceof Error && depth < 10; depth++, current = current.cause) {
    deepest = current;
    const named = (current as { type?: unknown }).type;
    if (typeof named === 'string') type = named;
  }
  const text = deepest instanceof Error ? deepest.message : String(deepest);
  return { type, reason: (type === undefined ? text : `${type}: ${text}`).slice(0, 500) };
}

/** Answers that condemn a record or the size of a batch, not the broker's state: each part may be sent again. */
const RECORD_FAULTS = [
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
];

const TOPIC_FAULTS = ['UNKNOWN_TOPIC_OR_PARTITION', 'INVALID_TOPIC_EXCEPTION', 'TOPIC_AUTHORIZATION_FAILED'];

export const isRecordFault = ({ type }: KafkajsFailure): boolean => type !== undefined && RECORD_FAULTS.includes(type);
export const isTopicFault = ({ type }: KafkajsFailure): boolean => type !== undefined && TOPIC_FAULTS.includes(type);

/**
 * The outcome of every record of a send that failed. kafkajs tells one error for a whole call, whatever the other partitions
 * answered, and retries inside the call: unless nothing can have been sent at all, the truth is `unknown`.
 */
export function outcomeOf(failure: KafkajsFailure, nothingSent: boolean): PublishOutcome {
  if (isTopicFault(failure)) return { status: 'topic-refused', reason: failure.reason };
  return { status: nothingSent ? 'retriable' : 'unknown', reason: failure.reason };
}

/** The member is not in the group any more, or a younger one took its place. */
const FENCED = ['ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID', 'REBALANCE_IN_PROGRESS'];

/** A commit refused while the group is completing a rebalance belongs to a generation that has ended. */
export const isFenced = ({ type }: KafkajsFailure): boolean => type !== undefined && FENCED.includes(type);

export const isRebalance = ({ type }: KafkajsFailure): boolean =>
  type === 'REBALANCE_IN_PROGRESS' || type === 'NOT_COORDINATOR_FOR_GROUP';

/** Wrong credentials or missing permissions: waiting does not heal them. */
export function isRefusedAccess(error: unknown): boolean {
  for (let depth = 0, current = error; current instanceof Error && depth < 10; depth++, current = current.cause) {
    const { name, type } = current as { name: string; type?: unknown };
    if (name === 'KafkaJSSASLAuthenticationError') return true;
    if (type === 'GROUP_AUTHORIZATION_FAILED' || type === 'CLUSTER_AUTHORIZATION_FAILED') return true;
  }
  return false;
}
