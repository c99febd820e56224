import type { Field } from '../field.js';
import type { Judge } from '../finding.js';
import {
  DEFAULT_AMOUNT,
  readAmount,
  readReplicas,
  rolloutNumbers,
  type Amount,
  type Replicas,
  type RolloutNumbers,
} from '../rollout.js';
import type { Workload } from '../workload.js';

const CODE = 'R-SHUT-K8S-3';
const WRITE = 'write maxSurge: 1 and maxUnavailable: 0';

/** R-SHUT-K8S-3: whether an update takes pods away before others are ready. */
export function judgeRollout(workload: Workload, scalers: readonly Field[], judge: Judge): void {
  switch (workload.kind) {
    case 'Deployment':
      // Argo's Rollout makes the pods, in its own way, and scales the Deployment to none.
      if (workload.rolledOutBy === undefined) judgeStrategy(workload, scalers, judge);
      break;
    case 'Rollout': {
      const canary = workload.object.at('spec', 'strategy', 'canary');
      if (canary !== undefined) judgeNumbers(workload, canary, canary, scalers, judge);
      break;
    }
    case 'DaemonSet':
      judgeDaemonSet(workload, judge);
      break;
    // A StatefulSet replaces one pod after the other and has no surge; nothing replaces the pods of the other kinds.
  }
}

function judgeStrategy(workload: Workload, scalers: readonly Field[], judge: Judge): void {
  const strategy = workload.object.at('spec', 'strategy');
  const type = strategy?.get('type');
  if (type?.text === 'Recreate') {
    const say = workload.serving.length > 0 || workload.isPatch ? judge.error : judge.hint;
    say(CODE, type.place, `Recreate stops all pods before the first new one runs: every update is an outage; ${WRITE}`);
    return;
  }
  const rolling = strategy?.get('rollingUpdate');
  judgeNumbers(workload, rolling, strategy ?? workload.object.get('kind') ?? workload.object, scalers, judge);
}

function judgeNumbers(
  workload: Workload,
  rolling: Field | undefined,
  fallback: Field,
  scalers: readonly Field[],
  judge: Judge,
): void {
  const written = { surge: rolling?.get('maxSurge'), unavailable: rolling?.get('maxUnavailable') };
  const surge = written.surge === undefined ? DEFAULT_AMOUNT : readAmount(written.surge);
  const unavailable = written.unavailable === undefined ? DEFAULT_AMOUNT : readAmount(written.unavailable);
  if (surge === undefined || unavailable === undefined) {
    const wrong = (surge === undefined ? written.surge : written.unavailable) ?? fallback;
    judge.error(CODE, wrong.place, `"${wrong.text ?? ''}" is neither a whole number nor a percentage; ${WRITE}`);
    return;
  }
  const replicas = readReplicas(workload, scalers);
  if (workload.isPatch) {
    judgePatch(written, unavailable, replicas, judge);
    return;
  }
  const place = (written.unavailable ?? written.surge ?? fallback).place;
  const worst = worstOf(surge, unavailable, replicas);
  if (worst.unavailable > 0) {
    // A worker that is away for a moment is missed by nobody.
    const say = workload.serving.length > 0 ? judge.error : judge.hint;
    say(
      CODE,
      place,
      `an update takes ${takes(worst.unavailable)} away before the new one is ready (${replicas.source}); ${WRITE}`,
    );
  } else if (worst.surge > 1) {
    judge.hint(
      CODE,
      (written.surge ?? fallback).place,
      `an update adds up to ${worst.surge} pods at once, not 1 (${replicas.source}); ${WRITE}`,
    );
  } else if (workload.serving.length > 0 && !isLiteral(surge, unavailable)) {
    const later =
      'percent' in unavailable && unavailable.percent > 0
        ? `; from ${Math.ceil(100 / unavailable.percent)} replicas on one pod is taken away`
        : '';
    judge.hint(CODE, place, `1 and 0 are reached by rounding only (${replicas.source})${later}; ${WRITE}`);
  }
}

/** What a patch does not say stands in its base. */
function judgePatch(
  written: { readonly surge: Field | undefined; readonly unavailable: Field | undefined },
  unavailable: Amount,
  replicas: Replicas,
  judge: Judge,
): void {
  if (written.unavailable === undefined) return;
  const { place } = written.unavailable;
  if ('count' in unavailable) {
    if (unavailable.count > 0) {
      judge.error(
        CODE,
        place,
        `an update takes ${takes(unavailable.count)} away before the new one is ready; ${WRITE}`,
      );
    }
  } else if (!replicas.isWritten && unavailable.percent > 0) {
    judge.cannotTell(place, `how many pods ${unavailable.percent} % are: the number of replicas is not in this file`);
  } else if (Math.floor((replicas.most * unavailable.percent) / 100) > 0) {
    judge.error(CODE, place, `an update takes pods away before the new ones are ready (${replicas.source}); ${WRITE}`);
  }
}

function worstOf(surge: Amount, unavailable: Amount, { least, most }: Replicas): RolloutNumbers {
  const [few, many] = [least, most].map((count) => rolloutNumbers(surge, unavailable, count)) as [
    RolloutNumbers,
    RolloutNumbers,
  ];
  return {
    surge: Math.max(few.surge, many.surge),
    unavailable: Math.max(few.unavailable, many.unavailable),
  };
}

function isLiteral(surge: Amount, unavailable: Amount): boolean {
  return 'count' in surge && 'count' in unavailable;
}

function isZero(amount: Amount | undefined): boolean {
  return amount !== undefined && ('count' in amount ? amount.count : amount.percent) === 0;
}

function takes(pods: number): string {
  return pods === 1 ? 'a pod' : `${pods} pods`;
}

function judgeDaemonSet(workload: Workload, judge: Judge): void {
  const isBound =
    workload.pod?.get('hostNetwork')?.text === 'true' || workload.containers.some(({ usesHostPort }) => usesHostPort);
  // Two pods cannot have one port of a node.
  if (workload.serving.length === 0 || isBound || workload.isPatch) return;
  const update = workload.object.at('spec', 'updateStrategy');
  if (update?.get('type')?.text === 'OnDelete') return;
  const unavailable = update?.at('rollingUpdate', 'maxUnavailable');
  if (unavailable !== undefined && isZero(readAmount(unavailable))) return;
  const place = (unavailable ?? update ?? workload.object.get('kind') ?? workload.object).place;
  judge.hint(
    CODE,
    place,
    `an update of a DaemonSet takes the pod of a node away before the new one is ready; ${WRITE}`,
  );
}
