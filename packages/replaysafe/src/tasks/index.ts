export { taskKind, type InputOf, type ResultOf, type TaskKind, type TaskKindOptions, type TaskKinds } from './kind.js';
export { type RunningTask, type TaskHandler, type TaskHandlers } from './handler.js';
export { type Task } from './task.js';
export { TASK_STATES, type TaskState } from './states.js';
export {
  createTasks,
  type CancelOutcome,
  type CleanerOptions,
  type Enqueued,
  type NewTask,
  type Tasks,
  type TasksOptions,
  type TasksStatus,
} from './tasks.js';
export { createTaskWorker, type TaskWorker } from './worker.js';
export { type TaskWorkerOptions } from './worker-options.js';
export { sendRequest, type RequestInput, type RequestResult, type RequestSender } from './send-request.js';
