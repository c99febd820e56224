export {
  createDatabase,
  type PostgresOptions,
  type PostgresService,
  startPostgres,
  type TestDatabase,
} from './postgres.js';
export { createTopics, type KafkaOptions, type KafkaService, type NewTopic, startKafka } from './kafka.js';
export { startOnce } from './once.js';
