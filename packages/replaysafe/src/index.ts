export { ERRORS, ReplaysafeError, hasCode, type ErrorCode } from './errors.js';
export { EVENTS, onEvent, type EventName, type EventPayloads } from './events.js';
export { systemClock, type Clock, type Timer } from './ports/clock.js';
export { silentLogger, type Logger } from './ports/logger.js';
export { systemRandom, type Random } from './ports/random.js';
export type { Enqueue, OutboxEvent } from './ports/enqueue.js';
export type { PeriodicJob, Resource, StopSignals } from './ports/stop.js';
export type { SqlExecutor, SqlPort, SqlResult, SqlTransaction, TransactionOptions } from './ports/sql.js';
export {
  HEADERS,
  type BrokerRecord,
  type CommitOutcome,
  type PublishOutcome,
  type Publisher,
  type ReceivedBatch,
  type ReceivedRecord,
  type SubscribeOptions,
  type Subscriber,
  type SubscriberHealth,
} from './ports/broker.js';
