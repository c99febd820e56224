import type { Field } from './field.js';
import type { Place } from './finding.js';
import { readHook, type Hook } from './hook.js';
import { readProbe, type Probe } from './probe.js';

export interface Port {
  readonly name: string;
  readonly number: string;
}

export interface Variable {
  readonly place: Place;
  /** Absent where it comes from elsewhere (`valueFrom`). */
  readonly value: string | undefined;
}

export interface Container {
  readonly place: Place;
  readonly name: string;
  readonly hasImage: boolean;
  /** An init container that lives as long as the pod (`restartPolicy: Always`). */
  readonly isNativeSidecar: boolean;
  readonly ports: readonly Port[];
  readonly usesHostPort: boolean;
  readonly liveness: Probe | undefined;
  readonly readiness: Probe | undefined;
  readonly hook: Hook | undefined;
  /** Where `terminationGracePeriodSeconds` stands in it, which is no place for it. */
  readonly strayGrace: Place | undefined;
  readonly variables: ReadonlyMap<string, Variable>;
  /** `command` and `args` together: what runs as PID 1, as far as the manifest says. */
  readonly command: readonly string[];
  readonly commandPlace: Place;
}

/** Ports that a scraper or the kubelet asks, and no Service sends traffic to. */
const SIDE_PORT =
  /^(?:.*-)?(?:metrics?|prom(?:etheus)?|health(?:z|check)?|probes?|management|mgmt|admin|debug|pprof|jmx|telemetry|stats)(?:-.*)?$/;

export function readContainer(field: Field, isInit: boolean): Container {
  const ports = (field.get('ports')?.items ?? []).map((port) => ({
    name: port.get('name')?.text ?? '',
    number: port.get('containerPort')?.text ?? '',
  }));
  const portOf = (given: string): string => ports.find(({ name }) => name === given)?.number ?? given;
  const variables = readVariables(field.get('env'));
  const plain = new Map([...variables].flatMap(([name, { value }]) => (value === undefined ? [] : [[name, value]])));
  const command = field.get('command');
  const args = field.get('args');
  return {
    place: field.get('name')?.place ?? field.place,
    name: field.get('name')?.text ?? '',
    hasImage: field.has('image'),
    isNativeSidecar: isInit && field.get('restartPolicy')?.text === 'Always',
    ports,
    usesHostPort: (field.get('ports')?.items ?? []).some((port) => port.has('hostPort')),
    liveness: readProbe(field.get('livenessProbe'), portOf),
    readiness: readProbe(field.get('readinessProbe'), portOf),
    hook: readHook(field.at('lifecycle', 'preStop'), portOf, plain),
    strayGrace: field.get('terminationGracePeriodSeconds')?.place,
    variables,
    command: [...(command?.texts ?? []), ...(args?.texts ?? [])],
    commandPlace: (command ?? args ?? field).place,
  };
}

export function isSidePort({ name }: Port): boolean {
  return SIDE_PORT.test(name);
}

/** Whether the container speaks HTTP, for all the manifest says. */
export function speaksHttp({ ports, liveness, readiness }: Container): boolean {
  if (liveness?.handler?.kind === 'http' || readiness?.handler?.kind === 'http') return true;
  return ports.some(({ name }) => /^(?:https?|web|rest|api)(?:-|$)/.test(name));
}

function readVariables(env: Field | undefined): Map<string, Variable> {
  const variables = new Map<string, Variable>();
  for (const entry of env?.items ?? []) {
    const name = entry.get('name')?.text;
    if (name === undefined) continue;
    const value = entry.get('value');
    // Neither a value nor a source is an empty text.
    const written = value?.text ?? (entry.has('valueFrom') ? undefined : '');
    variables.set(name, { place: value?.place ?? entry.place, value: written });
  }
  return variables;
}
