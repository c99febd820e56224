import { type Clock } from '../ports/clock.js';
import { type Connection } from './connections.js';

/**
 * How long no client has been heard that may go on using us. Probes go on to the end, each perhaps on a connection of its own,
 * and are no such sign: a balancer that asks five times a second would keep the line busy for ever.
 */
export interface HttpActivity {
  accepted(connection: Connection): void;
  asked(connection: Connection, probe: boolean): void;
  answered(connection: Connection): void;
  /** Something else happened after which clients need time to show themselves. */
  note(): void;
  silentMs(): number;
}

export function createHttpActivity(clock: Clock): HttpActivity {
  let lastMs = clock.monotonicMs();
  /** Accepted, and nothing asked yet: what it wants shows with its first request. */
  const newcomers = new Map<Connection, number>();
  const probing = new WeakSet<Connection>();
  const note = (): void => {
    lastMs = clock.monotonicMs();
  };

  return {
    note,
    accepted: (connection) => {
      newcomers.set(connection, clock.monotonicMs());
      connection.socket.once('close', () => {
        newcomers.delete(connection);
      });
    },
    asked: (connection, probe) => {
      newcomers.delete(connection);
      if (probe) {
        probing.add(connection);
        return;
      }
      probing.delete(connection);
      note();
    },
    answered: (connection) => {
      if (!probing.has(connection)) note();
    },
    silentMs: () => {
      // Not Math.max(...): a hundred thousand connections are more arguments than a call can have.
      let latestMs = lastMs;
      for (const acceptedMs of newcomers.values()) latestMs = Math.max(latestMs, acceptedMs);
      return clock.monotonicMs() - latestMs;
    },
  };
}
