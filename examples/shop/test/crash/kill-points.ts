import type { EventName } from 'replaysafe';
import type { ServiceName } from '../../src/shop/instance.js';
import type { CrashShop, RelayMode } from './crash-shop.js';
import {
  brokerDown,
  deadClaim,
  oneDeadLetter,
  order,
  oversizeEvent,
  poison,
  type Provocation,
  stopDuringClaim,
  stopUnderWork,
} from './provocations.js';

/** Where a process of the shop is killed, and how it gets there. */
export interface KillPoint {
  readonly event: EventName;
  /** The service that dies. */
  readonly owner: ServiceName;
  readonly provoke: Provocation;
  /** How the relay of orders works in these runs; all that a relay does is tried both ways. */
  readonly modes: readonly RelayMode[];
  /** Which event of this name, where the process has several of them. Default 1. */
  readonly nth?: number;
  /** What must hold beside the ledger. */
  readonly afterwards?: (shop: CrashShop) => Promise<void>;
  /** It happens once the process is stopping: a SIGTERM there is the second, which ends the process at once. */
  readonly stopping?: true;
}

const BOTH: readonly RelayMode[] = ['single-phase', 'two-phase'];
const relay = (event: EventName, provoke: Provocation): KillPoint => ({ event, owner: 'orders', provoke, modes: BOTH });
const phase = (owner: ServiceName, nth: number, mode: RelayMode): KillPoint => ({
  event: 'lifecycle.phase-ended',
  owner,
  provoke: stopUnderWork(owner),
  modes: [mode],
  nth,
  stopping: true,
});
const counted = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

/** Every durable event of the library, each killed at in its owner. */
export const KILL_POINTS: readonly KillPoint[] = [
  relay('outbox.claimed', order),
  relay('outbox.published', order),
  relay('outbox.marked', order),
  relay('outbox.failed', brokerDown),
  relay('outbox.dead', oversizeEvent),
  { ...relay('outbox.released', stopDuringClaim), stopping: true },
  relay('outbox.recovered', deadClaim),

  { event: 'inbox.committed', owner: 'billing', provoke: order, modes: ['single-phase'] },
  { event: 'inbox.offset-committed', owner: 'billing', provoke: order, modes: ['single-phase'] },
  { event: 'inbox.parked', owner: 'billing', provoke: poison, modes: ['two-phase'], afterwards: oneDeadLetter },

  { event: 'client.answered', owner: 'billing', provoke: order, modes: ['two-phase'] },

  { event: 'idempotency.executed', owner: 'orders', provoke: order, modes: ['single-phase'] },
  { event: 'idempotency.executed', owner: 'provider', provoke: order, modes: ['two-phase'] },

  // Lame duck, HTTP, work, producers, pools; billing has consumers as well, the provider no work.
  ...counted(5).map((nth) => phase('orders', nth, 'single-phase')),
  ...counted(6).map((nth) => phase('billing', nth, 'two-phase')),
  ...counted(4).map((nth) => phase('provider', nth, 'single-phase')),
];

/** Events behind which nothing is durable: right before a commit, where all of it has to happen again, and in the middle of a stop. */
export const UNCOMMITTED: readonly KillPoint[] = [
  { event: 'outbox.enqueued', owner: 'orders', provoke: order, modes: ['single-phase'] },
  { event: 'inbox.handled', owner: 'billing', provoke: order, modes: ['two-phase'] },
  ...counted(6).map((nth): KillPoint => ({ ...phase('billing', nth, 'two-phase'), event: 'lifecycle.phase-started' })),
];

const TASKS = '../../../../packages/replaysafe/test/tasks/kill.crash.test.ts';
/** Durable events that are over when the shop is open, or are easier to reach alone, and where they are killed at instead. */
export const KILLED_ELSEWHERE: Readonly<Partial<Record<EventName, string>>> = {
  'migrate.applied': 'migrations.crash.test.ts',
  'task.claimed': TASKS,
  'task.succeeded': TASKS,
  'task.failed': TASKS,
  'task.given-up': TASKS,
  'task.released': TASKS,
  'task.recovered': TASKS,
};
