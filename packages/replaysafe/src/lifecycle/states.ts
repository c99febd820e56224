/**
 * `starting` until the service says it is ready, `running`, then `draining` (what came in is finished, nothing new is
 * begun), `closing` (what the work used is closed) and `closed`. Probes, HTTP, workers and consumers all read this one
 * state (R-SHUT-3).
 */
export type LifecycleState = 'starting' | 'running' | 'draining' | 'closing' | 'closed';

export type LifecycleInput = 'started' | 'stop-requested' | 'users-stopped' | 'all-stopped';

/** Every transition there is; an input that is not listed for a state leaves it as it is, so a stop cannot be undone. */
export const TRANSITIONS: Readonly<Record<LifecycleState, Readonly<Partial<Record<LifecycleInput, LifecycleState>>>>> =
  {
    starting: { started: 'running', 'stop-requested': 'draining' },
    running: { 'stop-requested': 'draining' },
    draining: { 'users-stopped': 'closing' },
    closing: { 'all-stopped': 'closed' },
    closed: {},
  };

export function nextState(state: LifecycleState, input: LifecycleInput): LifecycleState {
  return TRANSITIONS[state][input] ?? state;
}
