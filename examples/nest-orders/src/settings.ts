/** What the environment says; every setting has a default for a developer's machine. */
export const settings = {
  port: Number(process.env.PORT ?? 3000),
  databaseUrl: process.env.DATABASE_URL ?? 'postgresql://postgres@127.0.0.1:5432/nest_orders',
  brokers: (process.env.KAFKA_BROKERS ?? '127.0.0.1:9092').split(','),
  topic: process.env.ORDERS_TOPIC ?? 'orders.confirmed',
  /** Of the consumer's group membership: how long the partitions of a killed process stay with it. */
  sessionMs: Number(process.env.KAFKA_SESSION_MS ?? 6_000),
} as const;
