import { isSidePort, readContainer, type Container } from './container.js';
import type { Field } from './field.js';
import type { Place } from './finding.js';

/** Where each kind keeps its pod template. */
const TEMPLATE_PATHS: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
  DaemonSet: ['spec', 'template'],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  Rollout: ['spec', 'template'],
  DeploymentConfig: ['spec', 'template'],
  Job: ['spec', 'template'],
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
  Pod: [],
};

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
  /** Whether it has ports, but only such as are asked by scrapers and probes. */
  readonly hasOnlySidePorts: boolean;
}

/** A Service as far as it tells who serves. */
interface Route {
  readonly namespace: string | undefined;
  readonly selector: ReadonlyMap<string, string>;
  readonly targets: readonly string[];
}

/** All workloads among the objects, judged together with the Services beside them. */
export function readWorkloads(objects: readonly Field[]): Workload[] {
  const routes = objects.flatMap(readRoute);
  return objects.flatMap((object) => {
    const path = TEMPLATE_PATHS[kindOf(object)];
    if (path === undefined || isHook(object)) return [];
    return [readWorkload(object, path, routes)];
  });
}

/** Kinds that are not known and hold containers all the same: a custom resource that makes pods. */
export function foreignPods(objects: readonly Field[]): Field[] {
  return objects.filter(
    (object) =>
      !Object.hasOwn(TEMPLATE_PATHS, kindOf(object)) &&
      object.at('spec', 'template', 'spec', 'containers') !== undefined,
  );
}

export function kindOf(object: Field): string {
  const kind = object.get('kind')?.text ?? '';
  // Rollout is Argo's; another project's would be another thing.
  const isArgos = object.get('apiVersion')?.text?.startsWith('argoproj.io/') === true;
  return kind === 'Rollout' && !isArgos ? '' : kind;
}

function readWorkload(object: Field, path: readonly string[], routes: readonly Route[]): Workload {
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
  const declared = containers.filter(({ ports }) => ports.some((port) => !isSidePort(port)));
  const routed = routes.filter((route) => selects(route, object, template)).flatMap(({ targets }) => targets);
  return {
    kind,
    name: object.at('metadata', 'name')?.text ?? '(no name)',
    place: (object.get('kind') ?? object).place,
    podPlace: (pod ?? object.get('kind') ?? object).place,
    object,
    pod,
    containers,
    serving: isJob ? [] : servingOf(containers, declared, routed),
    isJob,
    isPatch: !containers.some(({ hasImage, isNativeSidecar }) => hasImage && !isNativeSidecar),
    hasOnlySidePorts: declared.length === 0 && containers.some(({ ports }) => ports.length > 0),
  };
}

/** A port in a manifest is information only: where a Service sends traffic to a pod without any, somebody serves it. */
function servingOf(
  containers: readonly Container[],
  declared: readonly Container[],
  routed: readonly string[],
): readonly Container[] {
  const main = containers.filter(({ isNativeSidecar }) => !isNativeSidecar);
  const meant = main.filter(({ ports }) =>
    ports.some(({ name, number }) => routed.includes(name) || routed.includes(number)),
  );
  if (declared.length > 0) return declared.filter(({ isNativeSidecar }) => !isNativeSidecar);
  if (meant.length > 0) return meant.filter(({ ports }) => ports.some((port) => !isSidePort(port)));
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
      namespace: object.at('metadata', 'namespace')?.text,
      selector: new Map(selector.keys.map((key) => [key, selector.get(key)?.text ?? ''])),
      targets: ports.map((port) => (port.get('targetPort') ?? port.get('port'))?.text ?? ''),
    },
  ];
}

function selects({ namespace, selector }: Route, object: Field, template: Field | undefined): boolean {
  const own = object.at('metadata', 'namespace')?.text;
  if (namespace !== undefined && own !== undefined && namespace !== own) return false;
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
