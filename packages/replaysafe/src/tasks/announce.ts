import { emit } from '../events.js';
import { type Logger } from '../ports/logger.js';
import { type Recovered, type TryEnd } from './claims.js';
import { type TaskState } from './states.js';

/** Tells what has been written; what was not ours any more is counted. */
export function announceEnds(
  worker: string,
  logger: Logger,
  ends: readonly TryEnd[],
  written: ReadonlyMap<string, TaskState>,
): void {
  const succeeded: string[] = [];
  const released: string[] = [];
  let fenced = 0;
  for (const { task, settlement } of ends) {
    const { id, kind, attempt } = task;
    if (!written.has(id)) fenced++;
    else if (settlement.kind === 'succeeded') succeeded.push(id);
    else if (settlement.kind === 'released') released.push(id);
    else if (settlement.kind === 'failed') {
      const { error, delayMs } = settlement;
      const fields = { worker, task: id, kind, attempt, error };
      if (written.get(id) === 'CANCELLED') logger.info(fields, 'a task failed and is cancelled');
      else logger.info({ ...fields, delayMs }, 'a task failed and will be tried again');
      emit('task.failed', { worker, id, kind, attempt, error });
    } else {
      const { error, reason } = settlement;
      logger.error({ worker, task: id, kind, attempt, error, reason }, 'a task was given up on');
      emit('task.given-up', { worker, id, kind, reason, error });
    }
  }
  if (succeeded.length > 0) emit('task.succeeded', { worker, ids: succeeded });
  if (released.length > 0) emit('task.released', { worker, ids: released });
  if (fenced > 0) {
    logger.warn({ worker, count: fenced }, 'tasks were claimed by another worker before their end could be written');
    emit('task.fenced', { worker, count: fenced });
  }
}

export function announceRecovered(worker: string, logger: Logger, recovered: readonly Recovered[]): void {
  if (recovered.length === 0) return;
  logger.info({ worker, count: recovered.length }, 'claims of another worker ran out');
  emit('task.recovered', { worker, ids: recovered.map(({ id }) => id) });
  for (const { id, kind } of recovered.filter(({ status }) => status === 'FAILED')) {
    logger.error({ worker, task: id, kind, reason: 'max-failures' }, 'a task was given up on');
    emit('task.given-up', { worker, id, kind, reason: 'max-failures', error: 'the lease ran out' });
  }
}
