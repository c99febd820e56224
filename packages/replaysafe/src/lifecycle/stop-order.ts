import { ReplaysafeError } from '../errors.js';
import { stageOf, type Phase } from './phases.js';

/** What the order needs to know of a registered resource. */
export interface Ordered {
  readonly name: string;
  readonly phase: Phase;
  readonly usedBy: readonly string[];
}

/**
 * Refuses a declared order that cannot be kept: a circle, or a user that the phases stop after what it uses.
 *
 * @throws RS_LIFECYCLE_CYCLE with the way round
 */
export function checkOrder(entries: ReadonlyMap<string, Ordered>): void {
  for (const entry of entries.values()) {
    for (const user of usersOf(entry, entries)) {
      if (stageOf(user.phase) > stageOf(entry.phase)) {
        throw new ReplaysafeError('RS_LIFECYCLE_CYCLE', {
          detail: `"${entry.name}" (${entry.phase}) is used by "${user.name}" (${user.phase}), which is stopped in a later phase`,
        });
      }
    }
  }
  const done = new Set<string>();
  for (const entry of entries.values()) visit(entry, entries, [], done);
}

function visit(
  entry: Ordered,
  entries: ReadonlyMap<string, Ordered>,
  path: readonly string[],
  done: Set<string>,
): void {
  if (done.has(entry.name)) return;
  const seen = path.indexOf(entry.name);
  if (seen >= 0) {
    const circle = [...path.slice(seen), entry.name].map((name) => `"${name}"`);
    throw new ReplaysafeError('RS_LIFECYCLE_CYCLE', { detail: circle.join(' is used by ') });
  }
  for (const user of usersOf(entry, entries)) visit(user, entries, [...path, entry.name], done);
  done.add(entry.name);
}

/** The registered users of an entry. A name nobody has registered holds nothing up. */
export function usersOf<Entry extends Ordered>(entry: Ordered, entries: ReadonlyMap<string, Entry>): readonly Entry[] {
  return entry.usedBy.flatMap((name) => entries.get(name) ?? []);
}

/** Names in `usedBy` that nobody has registered: perhaps a typing error, perhaps something this instance does not run. */
export function unknownUsers(entries: ReadonlyMap<string, Ordered>): readonly string[] {
  const names = [...entries.values()].flatMap((entry) => entry.usedBy);
  return [...new Set(names)].filter((name) => !entries.has(name));
}

/** How many entries of the same stage wait for this one, one behind the other. They need time of their own. */
export function followersOf(entry: Ordered, entries: ReadonlyMap<string, Ordered>): number {
  const behind = [...entries.values()].filter(
    (other) => other.usedBy.includes(entry.name) && stageOf(other.phase) === stageOf(entry.phase),
  );
  return Math.max(0, ...behind.map((other) => 1 + followersOf(other, entries)));
}
