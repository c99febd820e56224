import type { DataHook, ProxiedConnection } from '@replaysafe/test-services';

/** The request by which a consumer group stores its offsets. */
export const OFFSET_COMMIT = 8;

const LENGTH_BYTES = 4;

/**
 * A hook that acts when a request with this API key has gone by: each begins with its length, in four bytes, and its key, in
 * two.
 */
export function onKafkaRequest(apiKey: number, act: (connection: ProxiedConnection) => void): DataHook {
  const pending = new WeakMap<ProxiedConnection, Buffer>();
  return (chunk, connection) => {
    let rest = Buffer.concat([pending.get(connection) ?? Buffer.alloc(0), chunk]);
    while (rest.length >= LENGTH_BYTES + 2 && rest.length >= LENGTH_BYTES + rest.readInt32BE(0)) {
      if (rest.readInt16BE(LENGTH_BYTES) === apiKey) act(connection);
      rest = rest.subarray(LENGTH_BYTES + rest.readInt32BE(0));
    }
    pending.set(connection, rest);
    return undefined;
  };
}
