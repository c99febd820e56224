export { createOutbox, type Outbox, type OutboxOptions, type OutboxStatus } from './outbox.js';
export { createRelay, type Relay } from './relay.js';
export { type RelayOptions } from './relay-options.js';
