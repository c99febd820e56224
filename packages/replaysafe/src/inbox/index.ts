export { createConsumer, type Consumer, type ConsumerHealth } from './consumer.js';
export {
  CONSUMER_DEFAULTS,
  type ConsumerOptions,
  type HandleContext,
  type PrepareContext,
} from './consumer-options.js';
export type { InboxEvent } from './event.js';
export type { ProcessedState } from './states.js';
