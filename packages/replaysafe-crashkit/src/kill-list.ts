import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { EVENTS, onEvent, type EventName } from 'replaysafe';
import { killHere, parseKillPoint } from './kill-at.js';

/**
 * Kills this process at the points that a file lists, one a line, in the order of the lines. The file is looked at in every
 * event, so a test can set the next point while the process runs, or while none does; a missing file lists nothing.
 *
 * A line leaves the file just before its kill: what is still in there has not happened. Its `nth` counts the events of all
 * processes that were given the file since the line became the first.
 */
export function killByList(file: string): { cancel(): void } {
  const subscriptions = (Object.keys(EVENTS) as EventName[]).map((event) =>
    onEvent(event, () => {
      obey(file, event);
    }),
  );
  return {
    cancel: () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
    },
  };
}

/** The points that are still in the file, the next one first. */
export function readKillList(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

/**
 * Replaces the file in one step, so that no process ever reads half of it.
 * @throws RangeError for a point that is none, see {@link parseKillPoint}
 */
export function writeKillList(file: string, points: readonly string[]): void {
  points.forEach(parseKillPoint);
  writeFileSync(`${file}.new`, points.map((point) => `${point}\n`).join(''));
  renameSync(`${file}.new`, file);
}

function obey(file: string, event: EventName): void {
  const [next, ...later] = readKillList(file);
  if (next === undefined) return;
  const point = parseKillPoint(next);
  if (point.event !== event) return;
  if (point.nth > 1) {
    writeKillList(file, [`${event}:${String(point.nth - 1)}:${point.signal}`, ...later]);
    return;
  }
  writeKillList(file, later);
  killHere(point);
}
