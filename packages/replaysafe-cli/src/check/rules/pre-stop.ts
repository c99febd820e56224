import type { Container } from '../container.js';
import type { Judge } from '../finding.js';
import type { GracePeriod } from '../grace-period.js';
import { STANDARD_WAIT } from '../hook.js';
import type { Workload } from '../workload.js';

/** Above this, the default budget of the lifecycle (41 s) no longer fits 60 s beside the hook. */
const LONGEST_USUAL_WAIT = 19;
const WRITE = 'write lifecycle.preStop.sleep.seconds: 10 (before Kubernetes 1.30: exec.command ["sleep", "10"])';

/** R-SHUT-K8S-X1, R-SHUT-HTTP-2, R-SHUT-OBS-1: what a container does before SIGTERM. */
export function judgePreStop(workload: Workload, grace: GracePeriod, hasPlan: boolean, judge: Judge): void {
  for (const container of workload.containers) {
    const isServing = workload.serving.includes(container);
    if (container.hook === undefined) {
      if (isServing && !workload.isPatch) judgeAbsent(container, judge);
      continue;
    }
    if (isServing || workload.isPatch) judgeWait(container, judge);
    judgeShare(container, grace, hasPlan, judge);
  }
}

function judgeAbsent({ place, name }: Container, judge: Judge): void {
  judge.error(
    'R-SHUT-K8S-X1',
    place,
    `takes traffic and has no preStop hook: it stops while balancers still send it new connections; ${WRITE}`,
    name,
  );
}

function judgeWait({ hook, name }: Container, judge: Judge): void {
  switch (hook?.kind) {
    case 'none':
      judge.error('R-SHUT-K8S-X1', hook.place, `the preStop hook does not wait: ${hook.why}; ${WRITE}`, name);
      return;
    case 'drain':
      if (!hook.isOurs) judge.cannotTell(hook.place, 'how long the httpGet hook of preStop blocks', name);
      return;
    case 'wait':
      if (hook.seconds >= STANDARD_WAIT) return;
      if (hook.isOpen) judge.cannotTell(hook.place, 'how long the command of preStop takes; it should be 10 s', name);
      else {
        judge.error(
          'R-SHUT-HTTP-2',
          hook.place,
          `preStop takes ${hook.seconds} s, and balancers may send new connections for 10 s; ${WRITE}`,
          name,
        );
      }
  }
}

function judgeShare({ hook, name }: Container, grace: GracePeriod, hasPlan: boolean, judge: Judge): void {
  if (hook?.kind !== 'wait' || grace.seconds === undefined) return;
  const left = grace.seconds - hook.seconds;
  if (hook.seconds > (grace.seconds * 2) / 3) {
    judge.error(
      'R-SHUT-OBS-1',
      hook.place,
      `preStop takes ${hook.seconds} of ${grace.seconds} s, which leaves ${Math.max(left, 0)} s for the whole stop; the hook runs inside the grace period`,
      name,
    );
  } else if (hook.seconds > LONGEST_USUAL_WAIT && !hasPlan) {
    judge.hint(
      'R-SHUT-OBS-1',
      hook.place,
      `preStop takes ${hook.seconds} of ${grace.seconds} s; the service must plan its stop within ${left} s (check it with --budget)`,
      name,
    );
  }
}
