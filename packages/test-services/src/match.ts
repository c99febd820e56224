import { type DataHook, type ProxiedConnection } from './fault-proxy.js';
import { type Verdict } from './proxy-flow.js';

/**
 * A hook that acts when `sequence` has gone by in one direction of a connection, also if it came in two chunks.
 *
 * ```ts
 * // The reply to COMMIT never arrives:
 * proxy.onServerData = match('COMMIT\0', () => 'hold');
 * // The request arrives, and nothing comes back:
 * proxy.onClientData = match('POST /charges', (connection) => connection.withholdReplies());
 * ```
 */
export const match = (
  sequence: string | Uint8Array,
  act: (connection: ProxiedConnection) => Verdict | undefined | void, // eslint-disable-line @typescript-eslint/no-invalid-void-type -- a plain call is the common act
): DataHook => {
  const wanted = Buffer.from(sequence as string);
  const tails = new WeakMap<ProxiedConnection, Buffer>();
  return (chunk, connection) => {
    const seen = Buffer.concat([tails.get(connection) ?? Buffer.alloc(0), chunk]);
    const found = seen.lastIndexOf(wanted);
    // Only what follows the match may be part of the next one.
    const rest = found < 0 ? seen : seen.subarray(found + wanted.length);
    tails.set(connection, rest.subarray(Math.max(0, rest.length - wanted.length + 1)));
    return (found < 0 ? undefined : act(connection)) ?? 'pass';
  };
};
