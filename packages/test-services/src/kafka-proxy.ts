import { setTimeout as sleep } from 'node:timers/promises';
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from './fault-proxy.js';
import { type KafkaOptions, type KafkaService, type ProxiedListener, startKafka } from './kafka.js';

/** How long a test file waits for another that has the broker's one proxied port. */
const turnMs = 120_000;

/**
 * Starts a fault proxy before a broker of our own. Give clients the proxy's `address`: whatever they ask the broker
 * for, they are told that port again. A broker has one such port; while another proxy has it, this waits for its turn.
 */
export const startProxyToKafka = async (
  listener: ProxiedListener | null | undefined,
  hooks: Omit<FaultProxyOptions, 'target' | 'port'> = {},
): Promise<FaultProxy> => {
  if (listener === null || listener === undefined) {
    throw new Error(
      'The broker that KAFKA_BROKERS names sends its clients to its own address, past any proxy. Unset KAFKA_BROKERS, ' +
        'so that a broker of our own is started',
    );
  }
  const until = performance.now() + turnMs;
  for (;;) {
    try {
      return await startFaultProxy({ ...hooks, target: listener.target, port: listener.advertisedPort });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || performance.now() > until) throw error;
      await sleep(100);
    }
  }
};

/** A broker of its own and a proxy before it. */
export interface KafkaBehindProxy {
  readonly kafka: KafkaService;
  readonly proxy: FaultProxy;
  /** Address to give to clients: that of the proxy. */
  readonly brokers: string;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a broker and a fault proxy before it. Tests that can share a broker use {@link startProxyToKafka}. */
export const startKafkaBehindProxy = async (options: KafkaOptions = {}): Promise<KafkaBehindProxy> => {
  const kafka = await startKafka(options);
  let proxy: FaultProxy;
  try {
    proxy = await startProxyToKafka(kafka.proxied);
  } catch (error) {
    await kafka.stop();
    throw error;
  }
  const stop = async (): Promise<void> => {
    await proxy.stop();
    await kafka.stop();
  };
  return { kafka, proxy, brokers: proxy.address, stop, [Symbol.asyncDispose]: stop };
};
