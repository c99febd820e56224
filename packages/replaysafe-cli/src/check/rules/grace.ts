import type { Judge, Place } from '../finding.js';
import { DEFAULT_GRACE, STANDARD_GRACE, type GracePeriod } from '../grace-period.js';
import { hookSeconds } from '../hook.js';
import { speaksHttp } from '../container.js';
import type { Workload } from '../workload.js';

const WRITE = `write terminationGracePeriodSeconds: ${STANDARD_GRACE} in the pod's spec`;
/** What HTTP alone may take of the 60 s. */
const HTTP_SECONDS = 25;

/** R-SHUT-K8S-1, R-SHUT-2, R-SHUT-OBS-1: the grace period itself. `planMs` is what the service is known to need of it. */
export function judgeGrace(workload: Workload, grace: GracePeriod, planMs: number | undefined, judge: Judge): void {
  if (!grace.isWritten) {
    judgeAbsent(workload, grace.place, judge);
    return;
  }
  const { seconds, place } = grace;
  if (seconds === undefined || seconds < 0) {
    judge.error(
      'R-SHUT-K8S-1',
      place,
      `terminationGracePeriodSeconds is no whole number, which Kubernetes refuses; ${WRITE}`,
    );
  } else if (seconds < STANDARD_GRACE) {
    const isEnough = planMs !== undefined && planMs <= seconds * 1_000;
    const rule = isEnough ? judge.hint : judge.error;
    const why = isEnough
      ? `which holds the ${planMs} ms that the service plans`
      : 'after which what still runs is killed';
    if (workload.isJob) judge.hint('R-SHUT-K8S-1', place, `the grace period is ${seconds} s, not 60; ${WRITE}`);
    else rule('R-SHUT-K8S-1', place, `the grace period is ${seconds} s, not 60, ${why}; ${WRITE}`);
  } else if (seconds > STANDARD_GRACE) {
    judgeRaised(workload, seconds, place, judge);
  }
}

/** R-SHUT-K8S-X2: requests that may run longer than the grace period leaves them. */
export function judgeTimeLeft(workload: Workload, grace: GracePeriod, httpMs: number | undefined, judge: Judge): void {
  if (grace.seconds === undefined) return;
  const needed = httpMs === undefined ? HTTP_SECONDS : httpMs / 1_000;
  for (const container of workload.serving.filter(speaksHttp)) {
    const wait = hookSeconds(container.hook) ?? 0;
    const left = grace.seconds - wait;
    const isShort = grace.isWritten && grace.seconds <= DEFAULT_GRACE && httpMs === undefined;
    if (left >= needed && !isShort) continue;
    const sum = wait > 0 ? `${grace.seconds} s less ${wait} s of preStop are ${left} s` : `${grace.seconds} s`;
    judge.error(
      'R-SHUT-K8S-X2',
      grace.place,
      `${sum}, and HTTP may need ${needed} s of draining before the pools are closed: requests are killed on the way; ${WRITE}`,
      container.name,
    );
  }
}

function judgeAbsent(workload: Workload, place: Place, judge: Judge): void {
  if (workload.isPatch || workload.pod === undefined) return;
  const stray =
    workload.object.at('spec', 'terminationGracePeriodSeconds')?.place ??
    workload.containers.find(({ strayGrace }) => strayGrace !== undefined)?.strayGrace;
  const where =
    stray === undefined || workload.kind === 'Pod'
      ? ''
      : `; the one in line ${stray.line} is in the wrong place and has no effect`;
  const message = `no terminationGracePeriodSeconds: Kubernetes gives ${DEFAULT_GRACE} s, and what still runs then is killed${where}; ${WRITE}`;
  if (workload.isJob) judge.hint('R-SHUT-K8S-1', place, message);
  else judge.error('R-SHUT-K8S-1', stray ?? place, message);
}

/** Longer than the standard. The letter of K8S-1 is a hint where something in the file says what the time is for. */
function judgeRaised(workload: Workload, seconds: number, place: Place, judge: Judge): void {
  const rule = workload.isJob || hasReason(workload) ? judge.hint : judge.error;
  rule('R-SHUT-K8S-1', place, `the grace period is ${seconds} s, not 60; ${WRITE}`);
  if (workload.isJob) return;
  judge.error(
    'R-SHUT-2',
    place,
    `the budget is raised to ${seconds} s: cut what does not fit into 60 s into smaller work`,
  );
  judge.error(
    'R-SHUT-OBS-1',
    place,
    `a stop of up to ${seconds} s is planned; all that runs in sequence must fit 60 s`,
  );
}

function hasReason({ kind, containers }: Workload): boolean {
  return (
    kind === 'StatefulSet' ||
    containers.some(
      ({ hook, command }) =>
        hook?.kind === 'drain' || command.some((word) => /^-{1,2}[\w-]*(?:grace|drain|shutdown)/i.test(word)),
    )
  );
}
