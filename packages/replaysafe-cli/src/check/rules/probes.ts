import type { Container } from '../container.js';
import type { Judge } from '../finding.js';
import { alwaysTrue, normalPath, sameHandler, type Handler, type Probe } from '../probe.js';
import type { Workload } from '../workload.js';

const LIVE = '/health/live';
const READY = '/health/ready';
const LIVE_NAMES = /\/(?:live|livez|liveness|alive|healthz\/live)$/;
const READY_NAMES = /\/(?:ready|readyz|readiness)$/;

/** R-SHUT-K8S-2, R-SHUT-CFG-3, R-SHUT-CFG-4: probes. Start-up probes are another thing. */
export function judgeProbes(workload: Workload, judge: Judge): void {
  for (const container of workload.containers) {
    const isServing = workload.serving.includes(container);
    if (isServing && !workload.isPatch) judgeAbsent(container, judge);
    judgeSeparate(container, judge);
    judgeReadiness(container, judge);
    if (isServing) judgeNames(container, judge);
  }
}

function judgeAbsent({ place, name, liveness, readiness }: Container, judge: Judge): void {
  if (readiness === undefined) {
    const message = `no readinessProbe: the pod gets traffic as soon as it runs, and keeps it while it stops; write httpGet on ${READY}`;
    judge.error('R-SHUT-K8S-2', place, message, name);
  }
  if (liveness === undefined) {
    judge.error('R-SHUT-K8S-2', place, `no livenessProbe; write httpGet on ${LIVE}`, name);
  }
}

function judgeSeparate({ liveness, readiness, name }: Container, judge: Judge): void {
  const live = pathOf(liveness);
  const ready = pathOf(readiness);
  if (liveness?.handler && readiness?.handler && sameHandler(liveness.handler, readiness.handler)) {
    judge.error(
      'R-SHUT-CFG-4',
      readiness.place,
      `readiness asks what liveness asks (line ${liveness.place.line}): a stopping pod either stays ready or is restarted; write ${READY} and ${LIVE}`,
      name,
    );
    return;
  }
  if (readiness && ready !== undefined && LIVE_NAMES.test(ready)) {
    judge.error('R-SHUT-CFG-4', readiness.place, `readiness asks the liveness path ${ready}; write ${READY}`, name);
  }
  if (liveness && live !== undefined && READY_NAMES.test(live)) {
    judge.error(
      'R-SHUT-CFG-4',
      liveness.place,
      `liveness asks the readiness path ${live}, which says 503 while the pod drains: it is restarted then; write ${LIVE}`,
      name,
    );
  }
}

function judgeReadiness({ readiness, name }: Container, judge: Judge): void {
  const handler = readiness?.handler;
  if (readiness === undefined || handler === undefined) return;
  if (handler.kind === 'tcp') {
    judge.error(
      'R-SHUT-CFG-3',
      readiness.place,
      `a tcpSocket readiness cannot say 503: the pod stays ready until its port is closed; write httpGet on ${READY}`,
      name,
    );
  } else if (alwaysTrue(handler)) {
    judge.error(
      'R-SHUT-CFG-3',
      readiness.place,
      'the command of readiness succeeds for as long as the container runs, so a stopping pod stays ready; ask the service',
      name,
    );
  }
}

function judgeNames({ liveness, readiness, name }: Container, judge: Judge): void {
  for (const [what, probe, standard] of [
    ['readiness', readiness, READY],
    ['liveness', liveness, LIVE],
  ] as const) {
    const path = pathOf(probe);
    if (probe === undefined || path === undefined || path === standard) continue;
    judge.hint('R-SHUT-K8S-2', probe.place, `${what} is asked on ${path}; the standard's path is ${standard}`, name);
  }
}

function pathOf(probe: Probe | undefined): string | undefined {
  const handler: Handler | undefined = probe?.handler;
  return handler?.kind === 'http' ? normalPath(handler.path) : undefined;
}
