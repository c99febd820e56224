export { kafkajsPublisher, type KafkajsPublisher, type KafkajsPublisherOptions } from './kafkajs-publisher.js';
export { kafkajsSubscriber, type KafkajsSubscriber, type KafkajsSubscriberOptions } from './kafkajs-subscriber.js';
export type * from './kafkajs-types.js';
