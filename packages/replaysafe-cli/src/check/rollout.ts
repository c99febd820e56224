import type { Field } from './field.js';
import { mayShareNamespace, type Workload } from './workload.js';

/** How many pods an update may add and take away, as Kubernetes rounds it. */
export interface RolloutNumbers {
  readonly surge: number;
  readonly unavailable: number;
}

export type Amount = { readonly count: number } | { readonly percent: number };

/** What Kubernetes takes where nothing is written. */
export const DEFAULT_AMOUNT: Amount = { percent: 25 };

/** A whole number or `"25%"`; `undefined` for anything else, which the API server refuses. */
export function readAmount(field: Field): Amount | undefined {
  if (field.whole !== undefined && field.whole >= 0) return { count: field.whole };
  const percent = /^(\d+)%$/.exec(field.text ?? '');
  return percent === null ? undefined : { percent: Number(percent[1]) };
}

/** Surge is rounded up, unavailable down; where both come to 0 the update could not move, and Kubernetes takes one pod away. */
export function rolloutNumbers(surge: Amount, unavailable: Amount, replicas: number): RolloutNumbers {
  const pods = Math.max(replicas, 1);
  const up = 'count' in surge ? surge.count : Math.ceil((pods * surge.percent) / 100);
  const down = 'count' in unavailable ? unavailable.count : Math.floor((pods * unavailable.percent) / 100);
  return { surge: up, unavailable: up === 0 && down === 0 ? 1 : down };
}

export interface Replicas {
  readonly least: number;
  readonly most: number;
  /** Where the numbers come from, for a message. */
  readonly source: string;
  readonly isWritten: boolean;
}

/** Kubernetes' own autoscaler, and KEDA's, which makes one in the cluster. */
const SCALERS: Readonly<
  Record<string, { readonly least: string; readonly most: string; readonly mostByDefault?: number }>
> = {
  HorizontalPodAutoscaler: { least: 'minReplicas', most: 'maxReplicas' },
  ScaledObject: { least: 'minReplicaCount', most: 'maxReplicaCount', mostByDefault: 100 },
};

export function isScaler(object: Field): boolean {
  return Object.hasOwn(SCALERS, object.get('kind')?.text ?? '');
}

/** How many pods there are: of the autoscaler where one is among the files, else as written, else one. */
export function readReplicas({ kind, name, object }: Workload, scalers: readonly Field[]): Replicas {
  const scaler = scalers.find(
    (each) =>
      (each.at('spec', 'scaleTargetRef', 'kind')?.text ?? 'Deployment') === kind &&
      each.at('spec', 'scaleTargetRef', 'name')?.text === name &&
      mayShareNamespace(each, object),
  );
  const names = SCALERS[scaler?.get('kind')?.text ?? 'none'];
  if (scaler !== undefined && names !== undefined) {
    const least = scaler.at('spec', names.least)?.whole ?? 1;
    const most = scaler.at('spec', names.most)?.whole ?? names.mostByDefault ?? least;
    return { least, most, source: `${least} to ${most} replicas of the autoscaler`, isWritten: true };
  }
  const written = object.at('spec', 'replicas')?.whole;
  const count = written ?? 1;
  const source = `${count} ${count === 1 ? 'replica' : 'replicas'}${written === undefined ? ', the default' : ''}`;
  return { least: count, most: count, source, isWritten: written !== undefined };
}
