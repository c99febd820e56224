export {
  type DataHook,
  type Delay,
  type FaultProxy,
  type FaultProxyOptions,
  type ProxiedConnection,
  startFaultProxy,
  type Target,
} from './fault-proxy.js';
export { freePort } from './free-port.js';
export {
  createTopics,
  type KafkaOptions,
  type KafkaService,
  type NewTopic,
  type ProxiedListener,
  startKafka,
} from './kafka.js';
export { type KafkaBehindProxy, startKafkaBehindProxy, startProxyToKafka } from './kafka-proxy.js';
export { match } from './match.js';
export { startOnce } from './once.js';
export {
  createDatabase,
  type PostgresOptions,
  type PostgresService,
  startPostgres,
  type TestDatabase,
} from './postgres.js';
export { type Verdict } from './proxy-flow.js';
export { type Count, drainRun, type DrainRun, type DrainRunOptions, type Outcome, total } from './drain/index.js';
