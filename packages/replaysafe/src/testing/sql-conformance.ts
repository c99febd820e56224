import type { ConformanceCase } from './conformance-case.js';
import { basics } from './sql/basics.js';
import { bounds } from './sql/bounds.js';
import { commits } from './sql/commit.js';
import { handles } from './sql/handles.js';
import type { SqlHarness } from './sql/harness.js';

export {
  SQL_CONFORMANCE_TABLES,
  type OpenedPort,
  type OpenOptions,
  type OwnHandle,
  type SqlFaults,
  type SqlHarness,
} from './sql/harness.js';

/**
 * What every SQL adapter must do, P1 to P6 each as the schedule that breaks a port without it. Cases share the harness's
 * tables and run one after the other.
 */
export function sqlConformance<Tx>(): readonly ConformanceCase<SqlHarness<Tx>>[] {
  return [...basics<Tx>(), ...commits<Tx>(), ...bounds<Tx>(), ...handles<Tx>()];
}
