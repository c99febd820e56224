import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { publisherConformance, subscriberConformance } from '../../../src/testing/index.js';
import { startKafkajsHarness, type KafkajsHarness } from './kafkajs-harness.js';

let harness: KafkajsHarness;

beforeAll(async () => {
  // A broker of somebody else may refuse sessions below 6 s.
  harness = await startKafkajsHarness(inject('kafkaBrokers'), inject('kafkaOwn') ? 2_000 : 6_000);
});

afterAll(() => harness.stop());

describe('kafkajsPublisher', () => {
  for (const one of publisherConformance()) it(one.name, () => one.run(harness));
});

describe('kafkajsSubscriber', () => {
  for (const one of subscriberConformance()) it(one.name, () => one.run(harness));
});
