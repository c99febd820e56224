import { parseOptions } from '../options.js';
import { planBudget, type Budget } from './budget.js';
import { LIFECYCLE_OPTIONS, type LifecycleOptions } from './lifecycle-options.js';

/** A service's budget as read from its options, defaults filled in, and what is planned from it. */
export interface PlannedBudget extends Budget {
  /** Default 60 s. */
  readonly graceMs: number;
  /** Default 0. */
  readonly preStopMs: number;
  /** From the end of the lame duck to the last answer. Default 25 s. */
  readonly httpDrainMs: number;
  /** How long balancers may still send requests; `lameDuckMs` is at least that long. Default 0. */
  readonly propagationDelayMs: number;
}

/**
 * What `createLifecycle` would plan from these options, without making one: the same reading, the same arithmetic, the same refusals.
 * For tools that compare a service's budget with what surrounds it, such as `replaysafe check`.
 *
 * @throws RS_LIFECYCLE_BUDGET, RS_OPTION_UNKNOWN, RS_OPTION_INVALID
 */
export function budgetOf(options: LifecycleOptions = {}): PlannedBudget {
  const parsed = parseOptions('createLifecycle', LIFECYCLE_OPTIONS, options);
  return {
    ...planBudget(parsed),
    graceMs: parsed.graceMs,
    preStopMs: parsed.preStopMs,
    httpDrainMs: parsed.httpDrainMs,
    propagationDelayMs: parsed.propagationDelayMs,
  };
}
