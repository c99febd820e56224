import type { Field } from './field.js';
import type { Place } from './finding.js';
import { normalPath, readHandler } from './probe.js';
import { commandTime } from './shell.js';

/** For how many seconds balancers may still send new connections, by the standard. */
export const STANDARD_WAIT = 10;
/** The pre-stop endpoint of `lifecycle.prestop`. */
const DRAIN_PATH = '/-/prestop';

/** What a container does before SIGTERM. */
export type Hook =
  | { readonly kind: 'wait'; readonly place: Place; readonly seconds: number; readonly isOpen: boolean }
  /** Blocks until the service has moved its connections; begins the stop. */
  | { readonly kind: 'drain'; readonly place: Place; readonly isOurs: boolean }
  | { readonly kind: 'none'; readonly place: Place; readonly why: string };

/** @param preStop `lifecycle.preStop` of a container */
export function readHook(
  preStop: Field | undefined,
  portOf: (port: string) => string,
  variables: ReadonlyMap<string, string>,
): Hook | undefined {
  if (preStop === undefined) return undefined;
  const { place } = preStop;
  const sleep = preStop.get('sleep');
  if (sleep !== undefined) {
    const seconds = sleep.get('seconds');
    if (seconds?.whole === undefined) return { kind: 'none', place, why: 'its sleep has no whole number of seconds' };
    return { kind: 'wait', place: seconds.place, seconds: seconds.whole, isOpen: false };
  }
  const handler = readHandler(preStop, portOf);
  switch (handler?.kind) {
    case 'http':
      return { kind: 'drain', place, isOurs: normalPath(handler.path) === DRAIN_PATH };
    case 'exec':
      return handler.command.length === 0
        ? { kind: 'none', place, why: 'its exec has no command' }
        : { kind: 'wait', place, ...commandTime(handler.command, variables) };
    case 'tcp':
      return { kind: 'none', place, why: 'tcpSocket is no hook that Kubernetes carries out' };
    default:
      return { kind: 'none', place, why: 'it names no sleep, exec or httpGet' };
  }
}

/** How long the hook takes for sure; `undefined` where the file does not tell. */
export function hookSeconds(hook: Hook | undefined): number | undefined {
  if (hook === undefined || hook.kind === 'none') return 0;
  return hook.kind === 'wait' && !hook.isOpen ? hook.seconds : undefined;
}
