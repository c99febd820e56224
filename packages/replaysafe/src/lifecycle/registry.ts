import { ReplaysafeError } from '../errors.js';
import { type Entry } from './shutdown.js';
import { checkOrder, unknownUsers } from './stop-order.js';

/** What has been opened and must be stopped, by name. */
export interface Registry {
  readonly entries: ReadonlyMap<string, Entry>;
  /** @throws RS_LIFECYCLE_DUPLICATE_NAME, RS_LIFECYCLE_CYCLE, RS_OPTION_INVALID; the entry is not kept then */
  add(entry: Entry): void;
  /** @throws RS_LIFECYCLE_DUPLICATE_NAME, RS_OPTION_INVALID */
  check(name: string): void;
  /** The name itself, or the first of `name-2`, `name-3`… that nobody has. */
  freeName(name: string): string;
  unknownUsers(): readonly string[];
}

export function createRegistry(): Registry {
  const entries = new Map<string, Entry>();

  const check = (name: unknown): void => {
    if (typeof name !== 'string' || name === '') {
      throw new ReplaysafeError('RS_OPTION_INVALID', { detail: 'what is registered needs a name that is not empty' });
    }
    if (entries.has(name)) throw new ReplaysafeError('RS_LIFECYCLE_DUPLICATE_NAME', { detail: `"${name}"` });
  };

  return {
    entries,
    check,
    add: (entry) => {
      check(entry.name);
      if (!Array.isArray(entry.usedBy)) {
        throw new ReplaysafeError('RS_OPTION_INVALID', { detail: `usedBy of "${entry.name}" must be a list of names` });
      }
      entries.set(entry.name, entry);
      try {
        checkOrder(entries);
      } catch (error) {
        entries.delete(entry.name);
        throw error;
      }
    },
    freeName: (name) => {
      let free = name;
      for (let count = 2; entries.has(free); count++) free = `${name}-${count}`;
      return free;
    },
    unknownUsers: () => unknownUsers(entries),
  };
}
