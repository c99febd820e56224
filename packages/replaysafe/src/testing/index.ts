export type { ConformanceCase } from './conformance-case.js';
export { createFakeClock, type FakeClock, type FakeClockOptions } from './fake-clock.js';
export {
  sqlConformance,
  SQL_CONFORMANCE_TABLES,
  type OpenedPort,
  type OpenOptions,
  type OwnHandle,
  type SqlFaults,
  type SqlHarness,
} from './sql-conformance.js';
export { waitForEvent, type WaitForEventOptions } from './wait-for-event.js';
