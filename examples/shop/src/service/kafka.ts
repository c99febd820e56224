import kafkajs, { type Kafka } from 'kafkajs';
import type { Environment } from './environment.js';

/** Makes kafkajs clients for the brokers of `KAFKA_BROKERS`. Their own log is silent: what matters is told by the rooms. */
export function kafkaClients(env: Environment): (clientId: string) => Kafka {
  const brokers = env.text('KAFKA_BROKERS', '127.0.0.1:9092').split(',');
  return (clientId) =>
    new kafkajs.Kafka({
      clientId,
      brokers,
      logLevel: kafkajs.logLevel.NOTHING,
      connectionTimeout: 3_000,
      requestTimeout: 15_000,
    });
}
