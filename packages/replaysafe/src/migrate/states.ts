import { ReplaysafeError } from '../errors.js';
import type { MigrationFile } from './files.js';
import type { AppliedRow } from './sql.js';

/** How the files of this version stand to what is recorded in the database. */
export interface MigrationState {
  readonly applied: readonly AppliedRow[];
  readonly pending: readonly MigrationFile[];
  /** Recorded, but not shipped by this version: written by a newer one. */
  readonly unknown: readonly AppliedRow[];
  /** Recorded with another text than this version ships. */
  readonly changed: readonly AppliedRow[];
}

/** Compares by name, so that files of different rooms may arrive in any order. */
export function compare(files: readonly MigrationFile[], recorded: readonly AppliedRow[]): MigrationState {
  const shipped = new Map(files.map((file) => [file.name, file]));
  const names = new Set(recorded.map((row) => row.name));
  return {
    applied: recorded,
    pending: files.filter((file) => !names.has(file.name)),
    unknown: recorded.filter((row) => !shipped.has(row.name)),
    changed: recorded.filter((row) => (shipped.get(row.name)?.checksum ?? row.checksum) !== row.checksum),
  };
}

/** @throws RS_MIGRATE_NEWER_SCHEMA, RS_MIGRATE_CHANGED */
export function refuseUnusable(state: MigrationState): void {
  const breaking = state.unknown.filter((row) => row.breaking);
  if (breaking.length > 0) throw new ReplaysafeError('RS_MIGRATE_NEWER_SCHEMA', { detail: namesOf(breaking) });
  if (state.changed.length > 0) throw new ReplaysafeError('RS_MIGRATE_CHANGED', { detail: namesOf(state.changed) });
}

export function namesOf(rows: readonly { readonly name: string }[]): string {
  return rows.map((row) => row.name).join(', ');
}
