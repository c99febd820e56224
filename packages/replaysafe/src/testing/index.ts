export { HARNESS_MAX_RECORD_BYTES, type BrokerFaults, type BrokerHarness } from './broker/harness.js';
export type { ConformanceCase } from './conformance-case.js';
export { createFakeClock, type FakeClock, type FakeClockOptions } from './fake-clock.js';
export { publisherConformance } from './publisher-conformance.js';
export {
  sqlConformance,
  SQL_CONFORMANCE_TABLES,
  type OpenedPort,
  type OpenOptions,
  type OwnHandle,
  type SqlFaults,
  type SqlHarness,
} from './sql-conformance.js';
export { subscriberConformance } from './subscriber-conformance.js';
export { waitForEvent, type WaitForEventOptions } from './wait-for-event.js';
