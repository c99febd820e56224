import { isSidePort, readContainer, type Container } from './container.js';
import type { Field } from './field.js';
import type { Place } from './finding.js';

/** Where each kind keeps its pod template. */
const TEMPLATE_PATHS = new Map<string, readonly string[]>([
  ['Deployment', ['spec', 'template']],
  ['StatefulSet', ['spec', 'template']],
  ['DaemonSet', ['spec', 'template']],
  ['ReplicaSet', ['spec', 'template']],
  ['ReplicationController', ['spec', 'template']],
  ['Rollout', ['spec', 'template']],
  ['DeploymentConfig', ['spec', 'template']],
  ['Job', ['spec', 'template']],
  ['CronJob', ['spec', 'jobTemplate', 'spec', 'template']],
  ['Pod', []],
]);

export interface Workload {
  readonly kind: string;
  readonly name: string;
  readonly place: Place;
  /** What an error about something absent points at: the pod's spec, or the object. */
  readonly podPlace: Place;
  readonly object: Field;
  readonly pod: Field | undefined;
  readonly containers: readonly Container[];
  /** Those that a Service may send traffic to. */
  readonly serving: readonly Container[];
  /** Jobs end by themselves, and serve nobody. */
  readonly isJob: boolean;
  /** Part of an object that is whole only after `kustomize build`: what is absent here may stand elsewhere. */
  readonly isPatch: boolean;
  /** Where its pods stand, if not in it: `workloadRef` of Argo's Rollout. */
  readonly podsOf: string | undefined;
  /** The Rollout of Argo that takes its pods from this. */
  readonly rolledOutBy: string | undefined;
  /** Whether it has ports, but only such as are asked by scrapers and probes. */
  readonly hasOnlySidePorts: boolean;
}

/** A Service as far as it tells who serves. */
interface Route {
  readonly service: Field;
  readonly selector: ReadonlyMap<string, string>;
  readonly targets: readonly string[];
}

/** All workloads among the objects, judged together with the Services beside them. */
export function readWorkloads(objects: readonly Field[]): Workload[] {
  const routes = objects.flatMap(readRoute);
  const rollouts = objects.filter((object) => kindOf(object) === 'Rollout');
  return objects.flatMap((object) => {
    const path = TEMPLATE_PATHS.get(kindOf(object));
    if (path === undefined || isHook(object) || isMade(object, objects)) return [];
    return [readWorkload(object, path, routes, rollouts)];
  });
}

/** Kinds that are not known and hold pods all the same: a custom resource that makes them. */
export function foreignPods(objects: readonly Field[]): Field[] {
  return objects.filter(
    (object) => !TEMPLATE_PATHS.has(kindOf(object)) && holdsPod(object.get('spec'), DEEPEST_TEMPLATE),
  );
}

const DEEPEST_TEMPLATE = 6;

function holdsPod(field: Field | undefined, depth: number): boolean {
  if (field === undefined || depth === 0) return false;
  if (field.at('spec', 'containers')?.items.some((container) => container.has('image')) === true) return true;
  return field.keys.some((key) => holdsPod(field.get(key), depth - 1));
}

/** What a controller has made says nothing that its owner does not say, and old revisions say what is no longer true. */
function isMade(object: Field, objects: readonly Field[]): boolean {
  const owners = object.at('metadata', 'ownerReferences')?.items ?? [];
  return owners.some((owner) =>
    objects.some(
      (other) =>
        kindOf(other) === owner.get('kind')?.text &&
        other.at('metadata', 'name')?.text === owner.get('name')?.text &&
        mayShareNamespace(other, object),
    ),
  );
}

/** An object that names no namespace may be put into any. */
export function mayShareNamespace(one: Field, other: Field): boolean {
  const [first, second] = [one, other].map((each) => each.at('metadata', 'namespace')?.text);
  return first === undefined || second === undefined || first === second;
}

export function kindOf(object: Field): string {
  const kind = object.get('kind')?.text ?? '';
  // Rollout is Argo's; another project's would be another thing.
  const isArgos = object.get('apiVersion')?.text?.startsWith('argoproj.io/') === true;
  return kind === 'Rollout' && !isArgos ? '' : kind;
}

function readWorkload(
  object: Field,
  path: readonly string[],
  routes: readonly Route[],
  rollouts: readonly Field[],
): Workload {
  const kind = kindOf(object);
  const template = path.length === 0 ? object : object.at(...path);
  const pod = template?.get('spec');
  const containers = [
    ...list(pod, 'containers').map((field) => readContainer(field, false)),
    ...list(pod, 'initContainers')
      .map((field) => readContainer(field, true))
      .filter(({ isNativeSidecar }) => isNativeSidecar),
  ];
  const isJob = kind === 'Job' || kind === 'CronJob';
  const name = object.at('metadata', 'name')?.text ?? '(no name)';
  const podsOf = podsElsewhere(object);
  const rollout = rollouts.find((each) => podsElsewhere(each) === `${kind}/${name}` && mayShareNamespace(each, object));
  const declared = containers.filter(({ ports }) => ports.some((port) => !isSidePort(port)));
  const routed = routes.filter((route) => selects(route, object, template)).flatMap(({ targets }) => targets);
  return {
    kind,
    name,
    place: (object.get('kind') ?? object).place,
    podPlace: (pod ?? object.get('kind') ?? object).place,
    object,
    pod,
    containers,
    serving: isJob ? [] : servingOf(containers, declared, routed),
    isJob,
    isPatch: !containers.some(({ hasImage, isNativeSidecar }) => hasImage && !isNativeSidecar),
    podsOf,
    rolledOutBy: rollout?.at('metadata', 'name')?.text,
    hasOnlySidePorts: declared.length === 0 && containers.some(({ ports }) => ports.length > 0),
  };
}

function podsElsewhere(object: Field): string | undefined {
  const reference = kindOf(object) === 'Rollout' ? object.at('spec', 'workloadRef') : undefined;
  return reference && `${reference.get('kind')?.text ?? ''}/${reference.get('name')?.text ?? ''}`;
}

/** Those that a Service means, else all with ports. A port in a manifest is information only: where a Service sends traffic to a pod without any, somebody serves it. */
function servingOf(
  containers: readonly Container[],
  declared: readonly Container[],
  routed: readonly string[],
): readonly Container[] {
  const main = containers.filter(({ isNativeSidecar }) => !isNativeSidecar);
  const meant = main.filter(({ ports }) =>
    ports.some(({ name, number }) => routed.includes(name) || routed.includes(number)),
  );
  const meantToServe = meant.filter(({ ports }) => ports.some((port) => !isSidePort(port)));
  if (meantToServe.length > 0) return meantToServe;
  if (declared.length > 0) return declared.filter(({ isNativeSidecar }) => !isNativeSidecar);
  if (meant.length > 0) return [];
  const hasPorts = main.some(({ ports }) => ports.length > 0);
  return routed.length > 0 && !hasPorts ? main.slice(0, 1) : [];
}

function readRoute(object: Field): Route[] {
  const isService = kindOf(object) === 'Service' && (object.get('apiVersion')?.text ?? 'v1') === 'v1';
  const selector = object.at('spec', 'selector');
  if (!isService || selector === undefined || selector.keys.length === 0) return [];
  const ports = object.at('spec', 'ports')?.items ?? [];
  return [
    {
      service: object,
      selector: new Map(selector.keys.map((key) => [key, selector.get(key)?.text ?? ''])),
      targets: ports.map((port) => (port.get('targetPort') ?? port.get('port'))?.text ?? ''),
    },
  ];
}

function selects({ service, selector }: Route, object: Field, template: Field | undefined): boolean {
  if (!mayShareNamespace(service, object)) return false;
  const labels = template?.at('metadata', 'labels');
  return labels !== undefined && [...selector].every(([key, value]) => labels.get(key)?.text === value);
}

/** Test pods and jobs of a Helm chart, which run beside a release and not for it. */
function isHook(object: Field): boolean {
  return object.at('metadata', 'annotations', 'helm.sh/hook') !== undefined;
}

function list(pod: Field | undefined, key: string): Field[] {
  return (pod?.get(key)?.items ?? []).filter((field) => !field.has('$patch'));
}
