import { onEvent } from '../../events.js';
import { type Clock } from '../../ports/clock.js';

export interface Subscription {
  unsubscribe(): void;
}

/** The two gauges of the stop, as of now. A value set at the end would never be scraped: the process is gone by then. */
export interface ShutdownGauges {
  wholeMs(): number;
  phasesMs(): ReadonlyMap<string, number>;
  readonly subscriptions: readonly Subscription[];
}

/** Time that runs from its beginning until it is told its length. */
interface Stopwatch {
  readonly beganAtMs: number;
  lengthMs: number | undefined;
}

export function followShutdown(clock: Clock): ShutdownGauges {
  const phases = new Map<string, Stopwatch>();
  let whole: Stopwatch | undefined;

  const begin = (): Stopwatch => ({ beganAtMs: clock.monotonicMs(), lengthMs: undefined });
  const read = (watch: Stopwatch): number => watch.lengthMs ?? clock.monotonicMs() - watch.beganAtMs;

  return {
    wholeMs: () => (whole ? read(whole) : 0),
    phasesMs: () => new Map([...phases].map(([phase, watch]) => [phase, read(watch)])),
    subscriptions: [
      onEvent('lifecycle.stop-requested', () => {
        whole = begin();
      }),
      onEvent('lifecycle.phase-started', ({ phase }) => {
        phases.set(phase, begin());
      }),
      onEvent('lifecycle.phase-ended', ({ phase, durationMs }) => {
        const watch = phases.get(phase);
        if (watch) watch.lengthMs = durationMs;
      }),
      onEvent('lifecycle.stopped', ({ durationMs }) => {
        if (whole) whole.lengthMs = durationMs;
      }),
    ],
  };
}
