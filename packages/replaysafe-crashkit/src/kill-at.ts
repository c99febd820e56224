import { closeSync, openSync, writeSync } from 'node:fs';
import { EVENTS, onEvent, type EventName } from 'replaysafe';

export type KillSignal = 'SIGKILL' | 'SIGTERM' | 'SIGINT' | 'SIGSTOP';

const SIGNALS: readonly KillSignal[] = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGSTOP'];

/** Where a process is to be killed. */
export interface KillPoint {
  readonly event: EventName;
  /** Which of the process's events of this name, counted from 1. */
  readonly nth: number;
  readonly signal: KillSignal;
}

export interface KillOptions {
  /**
   * Path of a file that the kill makes just before it happens. While it exists nothing is killed: of a process, its
   * replacement and its siblings, all started with the same environment, one dies, once. Default: no file.
   */
  readonly marker?: string;
}

/**
 * Kills this process inside the `nth` event of a name. Subscribers of an event run synchronously, so that after SIGKILL
 * not one more statement of the process runs; the other signals arrive in the next turn of the event loop.
 *
 * One line on stderr says where it happened, for a test that wants to know that the process did not die of anything else.
 *
 * @throws RangeError for an event that does not exist, an `nth` below 1, a signal that is none of {@link KillSignal}
 */
export function killAt(
  event: EventName,
  nth = 1,
  signal: KillSignal = 'SIGKILL',
  options: KillOptions = {},
): { cancel(): void } {
  checkKillPoint({ event, nth, signal });
  let seen = 0;
  const subscription = onEvent(event, () => {
    seen += 1;
    if (seen !== nth) return;
    if (options.marker !== undefined && !claimMarker(options.marker)) return;
    killHere({ event, nth, signal });
  });
  return {
    cancel: () => {
      subscription.unsubscribe();
    },
  };
}

/**
 * Reads `outbox.marked`, `outbox.marked:2` or `outbox.marked:2:SIGTERM`.
 * @throws RangeError for anything else
 */
export function parseKillPoint(text: string): KillPoint {
  const [event = '', nth = '1', signal = 'SIGKILL', ...rest] = text.split(':');
  if (rest.length > 0) throw new RangeError(`"${text}" is not <event>[:<nth>[:<signal>]]`);
  return checkKillPoint({ event: event as EventName, nth: Number(nth), signal: signal as KillSignal });
}

/** @internal Says so on stderr, and sends this process the signal. */
export function killHere({ event, nth, signal }: KillPoint): void {
  // Synchronous on purpose: a stream's buffer would die with the process.
  writeSync(2, `replaysafe-crashkit: ${signal} at ${event}:${String(nth)}, pid ${String(process.pid)}\n`);
  process.kill(process.pid, signal);
}

function checkKillPoint(point: KillPoint): KillPoint {
  if (!Object.hasOwn(EVENTS, point.event)) {
    throw new RangeError(`no event is called "${point.event}"; there are ${Object.keys(EVENTS).join(', ')}`);
  }
  if (!Number.isInteger(point.nth) || point.nth < 1) throw new RangeError('nth counts from 1');
  if (!SIGNALS.includes(point.signal)) throw new RangeError(`signal must be one of ${SIGNALS.join(', ')}`);
  return point;
}

/** Whether this process is the one that made the file: `wx` fails where it exists. */
function claimMarker(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx'));
    return true;
  } catch {
    return false;
  }
}
