import { startKafka, startPostgres } from '@replaysafe/test-services';
import { aborted } from './program.js';

export interface Infrastructure {
  readonly databaseUrl: string;
  readonly kafkaBrokers: string;
  /** Whether each was started by us, for this run alone. */
  readonly ownDatabase: boolean;
  readonly ownKafka: boolean;
  stop(): Promise<void>;
}

/**
 * PostgreSQL and Kafka: those that `DATABASE_URL` and `KAFKA_BROKERS` name, else of our own.
 *
 * @returns nothing when `ending` aborts first: what was being started goes with this process
 * @throws Error that says what to install; nothing is left running then
 */
export async function startInfrastructure(
  say: (line: string) => void,
  ending: AbortSignal,
): Promise<Infrastructure | undefined> {
  const starts = Promise.allSettled([startPostgres(), startKafka({ note: say })]);
  const settled = await Promise.race([starts, aborted(ending)]);
  if (settled === undefined) return undefined;
  const [database, kafka] = settled;
  const stop = async (): Promise<void> => {
    const started = [database, kafka].flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
    await Promise.all(started.map((service) => service.stop()));
  };
  if (database.status === 'rejected' || kafka.status === 'rejected') {
    await stop();
    throw (database.status === 'rejected' ? database : (kafka as PromiseRejectedResult)).reason;
  }
  return {
    databaseUrl: database.value.url,
    kafkaBrokers: kafka.value.brokers,
    ownDatabase: database.value.own,
    ownKafka: kafka.value.own,
    stop,
  };
}

/**
 * The longest a dead member of billing holds up its group, in milliseconds. A foreign broker accepts no session below 6 s
 * unless it is told to.
 */
export function sessionFor({ ownKafka }: Pick<Infrastructure, 'ownKafka'>): {
  readonly sessionMs: number;
  readonly heartbeatMs: number;
} {
  return ownKafka ? { sessionMs: 2_000, heartbeatMs: 300 } : { sessionMs: 6_000, heartbeatMs: 1_000 };
}
