import { readDocuments, type Documents } from './documents.js';
import type { Field } from './field.js';
import { startOf, Verdicts, type Finding, type Note, type Unreadable } from './finding.js';
import { readGrace } from './grace-period.js';
import type { InputText } from './inputs.js';
import { judgeBudget, knownBudget } from './rules/budget.js';
import { judgeEntrypoint } from './rules/entrypoint.js';
import { judgeGrace, judgeTimeLeft } from './rules/grace.js';
import { judgePreStop } from './rules/pre-stop.js';
import { judgeProbes } from './rules/probes.js';
import { isScaler } from './rollout.js';
import { judgeRollout } from './rules/rollout.js';
import type { BudgetFile } from './service-budget.js';
import { foreignPods, readWorkloads, type Workload } from './workload.js';

export interface Report {
  /** In the order of the files, then of the lines. */
  readonly findings: readonly Finding[];
  readonly notes: readonly Note[];
  readonly unreadable: readonly Unreadable[];
  readonly files: number;
  readonly workloads: number;
}

/** Judges all texts together: a Service or an autoscaler in one says something about the Deployment in another. */
export function check(texts: readonly InputText[], budget?: BudgetFile): Report {
  const read = texts.map(({ file, text }) => readDocuments(file, text));
  const objects = read.flatMap((documents) => documents.objects);
  const workloads = readWorkloads(objects);
  const verdicts = new Verdicts();
  const scalers = objects.filter(isScaler);
  const names = new Set(workloads.map(({ kind, name }) => `${kind}/${name}`));
  for (const workload of workloads) judgeWorkload(workload, names, scalers, budget, verdicts);
  for (const object of objects.filter((each) => !each.has('kind'))) {
    verdicts.about('(no kind)').cannotTell(object.place, 'what this is: it has no kind, so it is no Kubernetes object');
  }
  for (const object of foreignPods(objects)) {
    const subject = `${object.get('kind')?.text ?? '(no kind)'}/${object.at('metadata', 'name')?.text ?? '(no name)'}`;
    verdicts.about(subject).cannotTell(object.place, 'how this kind starts and stops its pods: it is not judged');
  }
  const order = new Map(texts.map(({ file }, index) => [file, index]));
  return {
    findings: sorted(verdicts.findings, order),
    notes: sorted([...verdicts.notes, ...unusedBudgets(workloads, budget)], order),
    unreadable: [...read.flatMap(({ unreadable }) => unreadable), ...nothingIn(texts, read)],
    files: texts.length,
    workloads: workloads.length,
  };
}

/** A pipe that broke hands on nothing at all, which must not pass for a manifest without faults. */
function nothingIn(texts: readonly InputText[], read: readonly Documents[]): Unreadable[] {
  const [first] = texts;
  if (first === undefined || read.some(({ objects, unreadable }) => objects.length + unreadable.length > 0)) return [];
  return [{ place: startOf(first.file), message: 'there is no Kubernetes object in it' }];
}

function judgeWorkload(
  workload: Workload,
  workloads: ReadonlySet<string>,
  scalers: readonly Field[],
  file: BudgetFile | undefined,
  verdicts: Verdicts,
): void {
  const judge = verdicts.about(`${workload.kind}/${workload.name}`);
  const grace = readGrace(workload);
  const known = knownBudget(workload, file, judge);
  judgeGrace(workload, grace, known?.planMs, judge);
  judgeTimeLeft(workload, grace, known?.httpMs, judge);
  judgePreStop(workload, grace, known !== undefined, judge);
  judgeProbes(workload, judge);
  judgeRollout(workload, scalers, judge);
  judgeEntrypoint(workload, judge);
  if (known !== undefined && !workload.isJob) judgeBudget(known, workload, grace, judge);
  if (workload.podsOf !== undefined) {
    if (!workloads.has(workload.podsOf)) {
      judge.cannotTell(
        workload.place,
        `anything about its pods: they stand in ${workload.podsOf}, which is in no file`,
      );
    }
  } else if (workload.isPatch) {
    judge.cannotTell(
      workload.place,
      'what is not in this file: it looks like a patch; check the output of `kustomize build`',
    );
  } else if (workload.hasOnlySidePorts && workload.serving.length === 0 && !workload.isJob) {
    judge.cannotTell(
      workload.place,
      'whether it takes traffic: judged as a worker, since its ports are named for probes and metrics',
    );
  }
}

function unusedBudgets(workloads: readonly Workload[], budget: BudgetFile | undefined): Note[] {
  const names = new Set(workloads.map(({ name }) => name));
  return (budget?.names ?? [])
    .filter((name) => !names.has(name))
    .map((name) => ({
      place: startOf(budget?.file ?? ''),
      subject: name,
      message: 'anything about this budget: no workload has its name',
    }));
}

function sorted<Item extends Finding | Note>(items: readonly Item[], order: ReadonlyMap<string, number>): Item[] {
  const rank = ({ place }: Item): number => order.get(place.file) ?? order.size;
  return [...items].sort(
    (one, other) =>
      rank(one) - rank(other) || one.place.line - other.place.line || one.place.column - other.place.column,
  );
}
