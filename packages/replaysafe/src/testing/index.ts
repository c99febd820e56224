export { createFakeClock, type FakeClock, type FakeClockOptions } from './fake-clock.js';
export { waitForEvent, type WaitForEventOptions } from './wait-for-event.js';
