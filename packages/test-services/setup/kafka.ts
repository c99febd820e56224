import { type ProxiedListener, startKafka, startOnce } from '@replaysafe/test-services';
import { type TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** Addresses of the brokers, joined by commas; each test makes its own topics with `createTopics`. */
    kafkaBrokers: string;
    /** Whether the broker is our own, which allows sessions of 500 ms; on another, use 6 s. */
    kafkaOwn: boolean;
    /** For `startProxyToKafka`; null unless the broker is our own. */
    kafkaProxied: ProxiedListener | null;
  }
}

/** Gives a vitest project a Kafka, one for all projects of a run. */
export default async (project: TestProject): Promise<() => Promise<void>> => {
  const { service, release } = await startOnce('kafka', () => startKafka());
  project.provide('kafkaBrokers', service.brokers);
  project.provide('kafkaOwn', service.own);
  project.provide('kafkaProxied', service.proxied ?? null);
  return release;
};
