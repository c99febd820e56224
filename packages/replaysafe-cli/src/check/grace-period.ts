import type { Place } from './finding.js';
import type { Workload } from './workload.js';

export const STANDARD_GRACE = 60;
export const DEFAULT_GRACE = 30;

export interface GracePeriod {
  /** What Kubernetes gives: as written, or its default. `undefined` where what is written is no whole number. */
  readonly seconds: number | undefined;
  readonly isWritten: boolean;
  readonly place: Place;
}

export function readGrace({ pod, podPlace }: Workload): GracePeriod {
  const field = pod?.get('terminationGracePeriodSeconds');
  if (field === undefined) return { seconds: DEFAULT_GRACE, isWritten: false, place: podPlace };
  return { seconds: field.whole, isWritten: true, place: field.place };
}
