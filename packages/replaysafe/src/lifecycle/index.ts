export { createLifecycle } from './create-lifecycle.js';
export { type EndablePool, type Lifecycle, type ServerOptions, type StopOptions } from './lifecycle.js';
export { type LifecycleOptions } from './lifecycle-options.js';
export { installSignals, type InstalledSignals, type SignalOptions } from './signals.js';
export { type Budget } from './budget.js';
export { budgetOf, type PlannedBudget } from './budget-of.js';
export { type HttpServer } from './connections.js';
export { type CheckOutcome, type ProbeAnswer, type ProbeKind, type ReadinessCheck } from './health.js';
export { type ConnectionClose, type HttpTraffic, type LateRequests } from './http-drain.js';
export { type Goodbye, type LongLivedConnection } from './goodbyes.js';
export { PHASES, type Phase } from './phases.js';
export {
  type HttpDrainReport,
  type PhaseReport,
  type ShutdownExitCode,
  type ShutdownProgress,
  type ShutdownReport,
  type StepOutcome,
  type StepReport,
} from './report.js';
export { type LifecycleState } from './states.js';
export { type UserPhase } from './stop-signals.js';
export { type HeldLease } from './lease.js';
export {
  type CronSchedule,
  type LeasedRunContext,
  type LeasedWorkerOptions,
  type LeaseOptions,
  type RunContext,
  type WorkerJob,
  type WorkerOptions,
  type WorkerPace,
} from './worker-job.js';
