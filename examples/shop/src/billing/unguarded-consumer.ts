import type { EachBatchPayload, IHeaders, Kafka } from 'kafkajs';
import { HEADERS, type Resource } from 'replaysafe';
import { operationKey, type HttpClient } from 'replaysafe/client';
import { chargeAtProvider, parseConfirmedOrder, recordCharge, type Queryable } from './charging.js';

export interface UnguardedConsumerOptions {
  readonly kafka: (clientId: string) => Kafka;
  readonly topic: string;
  readonly group: string;
  readonly session: { readonly sessionTimeoutMs: number; readonly heartbeatMs: number };
  readonly provider: HttpClient;
  readonly pool: Queryable;
}

/**
 * Billing as it is often written: a loop over the batch, offsets committed behind it, no memory of what was done. Killed in the
 * middle of a batch, it does again what it had done. It is here to be compared with `createConsumer`, and runs only when the
 * demo switches the guard `no-dedup-row` off.
 */
export function createUnguardedConsumer(
  options: UnguardedConsumerOptions,
): Resource & { start(): Promise<void>; stop(deadline?: AbortSignal): Promise<void> } {
  const { topic, group, session, provider, pool } = options;
  const consumer = options.kafka('unguarded-billing').consumer({
    groupId: group,
    sessionTimeout: session.sessionTimeoutMs,
    heartbeatInterval: session.heartbeatMs,
    allowAutoTopicCreation: false,
  });
  let started: Promise<void> | undefined;

  const chargeOne = async (value: Buffer | null, headers: IHeaders | undefined): Promise<void> => {
    const order = parseConfirmedOrder(JSON.parse(value?.toString() ?? 'null'));
    const key = operationKey('unguarded-billing', String(headers?.[HEADERS.eventId]));
    await recordCharge(pool, order, await chargeAtProvider(provider, order, key, AbortSignal.timeout(10_000)));
  };

  const eachBatch = async (payload: EachBatchPayload): Promise<void> => {
    const { batch } = payload;
    for (const message of batch.messages) {
      // Told to stop, it ends between two messages; only a kill leaves a mess.
      if (!payload.isRunning() || payload.isStale()) return;
      await chargeOne(message.value, message.headers);
      await payload.heartbeat();
    }
    const next = (BigInt(batch.lastOffset()) + 1n).toString();
    await consumer.commitOffsets([{ topic, partition: batch.partition, offset: next }]);
  };

  return {
    name: 'billing-consumer',
    start: () =>
      (started ??= (async () => {
        await consumer.connect();
        await consumer.subscribe({ topics: [topic], fromBeginning: true });
        await consumer.run({ autoCommit: false, eachBatchAutoResolve: true, eachBatch });
      })()),
    stop: async () => {
      if (started !== undefined) await consumer.disconnect();
    },
  };
}
