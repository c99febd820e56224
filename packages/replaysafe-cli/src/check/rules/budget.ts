import type { LifecycleOptions } from 'replaysafe/lifecycle';
import type { Variable } from '../container.js';
import { startOf, type Judge, type Place } from '../finding.js';
import { STANDARD_GRACE, type GracePeriod } from '../grace-period.js';
import { hookSeconds, STANDARD_WAIT, type Hook } from '../hook.js';
import { plan, type BudgetFile } from '../service-budget.js';
import type { Workload } from '../workload.js';

/** Environment variables that say a time of the budget: `GRACE_MS` and so on, the options' own names. */
const TIMES = [
  'graceMs',
  'preStopMs',
  'lameDuckMs',
  'propagationDelayMs',
  'httpDrainMs',
  'workMs',
  'consumersMs',
  'producersMs',
  'poolReserveMs',
  'exitMarginMs',
] as const satisfies readonly (keyof LifecycleOptions)[];

export interface KnownBudget {
  readonly options: LifecycleOptions;
  /** Where an option was read, for a finding about it. */
  readonly places: ReadonlyMap<string, Place>;
  /** Whether options that are not named have their defaults: so in a file, not in the environment. */
  readonly isWhole: boolean;
  /** All of the stop that must fit the grace period, hook included; absent where it does not fit itself. */
  readonly planMs: number | undefined;
  readonly httpMs: number | undefined;
  /** How long the pre-stop endpoint blocks. */
  readonly lameDuckMs: number | undefined;
}

/** What is known of the service's budget: from a file, and from plain environment variables, which go before it. */
export function knownBudget(workload: Workload, file: BudgetFile | undefined, judge: Judge): KnownBudget | undefined {
  const given = file?.optionsOf(workload.name);
  const options: Record<string, unknown> = { ...given };
  const places = new Map<string, Place>(Object.keys(options).map((name) => [name, startOf(file?.file ?? '')]));
  for (const { variables } of workload.containers) {
    for (const [name, variable] of variables) readVariable(name, variable, options, places, judge);
  }
  if (given === undefined && places.size === 0) return undefined;
  const planned = plan({ ...options, graceMs: Number(options['graceMs'] ?? STANDARD_GRACE * 1_000) });
  return {
    options,
    places,
    isWhole: given !== undefined,
    planMs: planned.fits && (given !== undefined || places.has('graceMs')) ? planned.budget.graceMs : undefined,
    httpMs: planned.fits && (given !== undefined || places.has('httpDrainMs')) ? planned.budget.endsMs.http : undefined,
    lameDuckMs:
      planned.fits && (given !== undefined || places.has('propagationDelayMs')) ? planned.budget.lameDuckMs : undefined,
  };
}

/** R-SHUT-2, R-SHUT-OBS-1: what the service plans, against what the manifest gives it. */
export function judgeBudget(known: KnownBudget, workload: Workload, grace: GracePeriod, judge: Judge): void {
  const { options, isWhole } = known;
  const placeOf = (name: string): Place => known.places.get(name) ?? [...known.places.values()][0] ?? grace.place;
  const graceMs = options.graceMs ?? (isWhole ? STANDARD_GRACE * 1_000 : undefined);
  if (graceMs !== undefined) {
    if (graceMs > STANDARD_GRACE * 1_000) {
      judge.error(
        'R-SHUT-2',
        placeOf('graceMs'),
        `the service plans ${graceMs} ms; cut what does not fit into 60 s into smaller work`,
      );
    }
    if (grace.seconds !== undefined && graceMs > grace.seconds * 1_000 && !isAbsentInPatch(workload, grace)) {
      judge.error(
        'R-SHUT-2',
        grace.place,
        `the service plans a stop of ${graceMs} ms, and Kubernetes kills it after ${grace.seconds} s; write terminationGracePeriodSeconds: ${Math.ceil(graceMs / 1_000)}`,
      );
    }
  }
  const hooks = workload.containers.flatMap(({ hook }) => (hook === undefined ? [] : [hook]));
  for (const hook of hooks) judgeHook(known, hook, judge);
  const waits = hooks.map((hook) => (hook.kind === 'drain' ? 0 : hookSeconds(hook)));
  const needsHook = isWhole || options.preStopMs !== undefined;
  if (hooks.length === 0 && needsHook && (options.preStopMs ?? 0) > 0 && !workload.isPatch) {
    judge.error(
      'R-SHUT-OBS-1',
      workload.podPlace,
      `the service plans preStopMs ${options.preStopMs ?? 0}, and there is no preStop hook`,
    );
  }
  const preStopMs = options.preStopMs ?? (isWhole ? 0 : Math.max(0, ...waits.map((wait) => wait ?? 0)) * 1_000);
  const planned = plan({ ...options, preStopMs, graceMs: graceMs ?? (grace.seconds ?? STANDARD_GRACE) * 1_000 });
  if (!planned.fits) judge.error('R-SHUT-OBS-1', placeOf('graceMs'), planned.arithmetic);
}

function judgeHook({ options, isWhole, lameDuckMs }: KnownBudget, hook: Hook, judge: Judge): void {
  if (hook.kind === 'drain' && hook.isOurs && lameDuckMs !== undefined && lameDuckMs < STANDARD_WAIT * 1_000) {
    judge.error(
      'R-SHUT-HTTP-2',
      hook.place,
      `the hook blocks for ${lameDuckMs} ms, and balancers may send new connections for ${STANDARD_WAIT} s; set propagationDelayMs to ${STANDARD_WAIT * 1_000}`,
    );
  }
  if (options.preStopMs === undefined && !isWhole) return;
  const planned = options.preStopMs ?? 0;
  if (hook.kind === 'drain') {
    if (planned > 0) {
      judge.hint(
        'R-SHUT-OBS-1',
        hook.place,
        `the stop begins with the httpGet hook, so preStopMs is 0, not ${planned}; its time is propagationDelayMs`,
      );
    }
    return;
  }
  const seconds = hookSeconds(hook);
  if (seconds === undefined) {
    judge.cannotTell(hook.place, `whether the preStop hook takes the ${planned} ms that the service plans (preStopMs)`);
  } else if (seconds * 1_000 > planned) {
    judge.error(
      'R-SHUT-OBS-1',
      hook.place,
      `preStop takes ${seconds * 1_000} ms, and the service plans preStopMs ${planned}: it is killed ${seconds * 1_000 - planned} ms before its plan ends`,
    );
  } else if (seconds * 1_000 < planned) {
    judge.hint(
      'R-SHUT-OBS-1',
      hook.place,
      `preStop takes ${seconds * 1_000} ms, less than the service plans (preStopMs ${planned}); make them equal`,
    );
  }
}

function isAbsentInPatch(workload: Workload, grace: GracePeriod): boolean {
  return workload.isPatch && !grace.isWritten;
}

function readVariable(
  name: string,
  { value, place }: Variable,
  options: Record<string, unknown>,
  places: Map<string, Place>,
  judge: Judge,
): void {
  const inSeconds = name === 'TERMINATION_GRACE_SECONDS' || name === 'TERMINATION_GRACE_PERIOD_SECONDS';
  const option = inSeconds ? 'graceMs' : TIMES.find((time) => time.replaceAll(/[A-Z]/g, '_$&').toUpperCase() === name);
  if (option === undefined) return;
  if (value === undefined) {
    judge.cannotTell(place, `what ${name} is: its value comes from elsewhere`);
    return;
  }
  const number = value.trim() === '' ? Number.NaN : Number(value) * (inSeconds ? 1_000 : 1);
  if (!isTaken(option, number)) {
    judge.cannotTell(place, `what ${name} means: createLifecycle takes no "${value}"`);
    return;
  }
  options[option] = number;
  places.set(option, place);
}

function isTaken(option: string, value: number): boolean {
  try {
    plan({ [option]: value });
    return true;
  } catch {
    return false;
  }
}
