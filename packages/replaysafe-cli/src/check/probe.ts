import type { Field } from './field.js';
import type { Place } from './finding.js';
import { shellScript } from './shell.js';

/** How a probe or hook asks: one of the handlers that Kubernetes knows. */
export type Handler =
  | { readonly kind: 'http'; readonly path: string; readonly target: string }
  | { readonly kind: 'tcp' | 'grpc'; readonly target: string }
  | { readonly kind: 'exec'; readonly command: readonly string[] };

export interface Probe {
  readonly place: Place;
  /** Absent where the probe names none, as in a patch that only changes a period. */
  readonly handler: Handler | undefined;
}

/** @param portOf the number behind a port's name, so that `http` and `8080` are seen to be one */
export function readProbe(field: Field | undefined, portOf: (port: string) => string): Probe | undefined {
  return field && { place: field.place, handler: readHandler(field, portOf) };
}

export function readHandler(field: Field, portOf: (port: string) => string): Handler | undefined {
  const http = field.get('httpGet');
  if (http !== undefined) {
    const target = `${http.get('host')?.text ?? ''}:${portOf(http.get('port')?.text ?? '')}`;
    return { kind: 'http', path: http.get('path')?.text ?? '/', target };
  }
  const tcp = field.get('tcpSocket');
  if (tcp !== undefined) {
    return { kind: 'tcp', target: `${tcp.get('host')?.text ?? ''}:${portOf(tcp.get('port')?.text ?? '')}` };
  }
  const grpc = field.get('grpc');
  if (grpc !== undefined) {
    return { kind: 'grpc', target: `${portOf(grpc.get('port')?.text ?? '')}/${grpc.get('service')?.text ?? ''}` };
  }
  const exec = field.get('exec');
  return exec && { kind: 'exec', command: exec.get('command')?.texts ?? [] };
}

export function sameHandler(one: Handler, other: Handler): boolean {
  if (one.kind === 'http' && other.kind === 'http') {
    return one.target === other.target && normalPath(one.path) === normalPath(other.path);
  }
  if (one.kind === 'exec' && other.kind === 'exec') {
    return one.command.length > 0 && scriptOf(one.command) === scriptOf(other.command);
  }
  return one.kind === other.kind && 'target' in one && 'target' in other && one.target === other.target;
}

/** `/health/` and `/health` are one path; a query makes another endpoint. */
export function normalPath(path: string): string {
  const [name = '', query] = path.split('?', 2);
  const trimmed = name.replace(/\/+$/, '');
  return `${trimmed.startsWith('/') ? trimmed : `/${trimmed}`}${query === undefined ? '' : `?${query}`}`;
}

/** `sh -c "x"` and `x` ask the same. */
function scriptOf(command: readonly string[]): string {
  return (shellScript(command) ?? command.join(' ')).trim().replaceAll(/\s+/g, ' ');
}

/** Commands that succeed for as long as the container runs, whatever the service says. */
const ALWAYS_TRUE =
  /^(?:\S*\/)?(?:true|:|echo\b.*|exit 0|(?:cat|ls|test -[efd]|\[ -[efd]) \/(?:proc\/(?:1|self)\/\S+|proc\/1|etc\/\S+|bin\/\S+)(?: \])?|pgrep\b.*|pidof\b.*|ps\b[^|]*|kill -0 1|sleep \d+\w?|date|hostname|uname\b.*)$/;

export function alwaysTrue(handler: Handler): boolean {
  return handler.kind === 'exec' && ALWAYS_TRUE.test(scriptOf(handler.command));
}
