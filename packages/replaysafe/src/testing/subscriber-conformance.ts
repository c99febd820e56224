import { deliveryCases } from './broker/delivery-cases.js';
import type { BrokerHarness } from './broker/harness.js';
import { membershipCases } from './broker/membership-cases.js';
import { stopCases } from './broker/stop-cases.js';
import type { ConformanceCase } from './conformance-case.js';

/**
 * What every subscriber must do, on a real broker. Cases run one after the other and leave the faults ended. One that plays a lost
 * session or a broker that is away takes a few sessions: keep `sessionTimeoutMs` of the harness small.
 */
export function subscriberConformance(): readonly ConformanceCase<BrokerHarness>[] {
  return [...deliveryCases, ...membershipCases, ...stopCases];
}
