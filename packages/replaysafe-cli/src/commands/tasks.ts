import { createTasks, TASK_STATES, type Task, type Tasks, type TaskState } from 'replaysafe/tasks';
import {
  UsageError,
  type CommandOption,
  type CommandResult,
  type DatabaseCommand,
  type DatabaseContext,
} from '../command.js';

const KIND: CommandOption = { type: 'string', value: '<kind>', summary: 'only tasks of this kind' };

const list: DatabaseCommand = {
  needs: 'database',
  name: 'tasks list',
  summary: 'show the newest tasks, without their inputs and results',
  options: {
    kind: KIND,
    status: { type: 'string', value: '<status>', summary: `one of ${TASK_STATES.join(', ')}` },
    limit: { type: 'string', value: '<n>', summary: 'default: 100' },
  },
  run: async (context) => {
    const { kind, status, limit } = context.options;
    const tasks = await tasksOf(context).list({
      ...(typeof kind === 'string' && { kind }),
      ...(typeof status === 'string' && { status: status as TaskState }),
      ...(typeof limit === 'string' && { limit: Number(limit) }),
    });
    return { json: { tasks: tasks.map(withoutContent) }, lines: tasks.map(line) };
  },
};

const show: DatabaseCommand = {
  needs: 'database',
  name: 'tasks show',
  operands: '<id>',
  summary: 'show one task, its input and result as well',
  run: async (context) => {
    const id = onlyId('tasks show', context);
    const task = await tasksOf(context).get(id);
    if (!task) return missing(id);
    const { input, result } = task;
    return {
      json: { task },
      lines: [line(task), `input: ${JSON.stringify(input)}`, `result: ${JSON.stringify(result)}`],
    };
  },
};

const cancel: DatabaseCommand = {
  needs: 'database',
  name: 'tasks cancel',
  operands: '<id>',
  summary: 'end a waiting task; the try of a running one becomes its last',
  run: async (context) => {
    const id = onlyId('tasks cancel', context);
    const outcome = await tasksOf(context).cancel(id);
    if (outcome === 'unknown') return missing(id);
    return { json: { id, outcome }, lines: [`${id}: ${outcome}`], failed: outcome === 'ended' };
  },
};

const redrive: DatabaseCommand = {
  needs: 'database',
  name: 'tasks redrive',
  operands: '[<id>…]',
  summary: 'try FAILED tasks again, with the same key and input: those named, or with --kind all of a kind',
  options: { kind: KIND },
  run: async (context) => {
    const { kind } = context.options;
    const ids = context.operands;
    if ((ids.length === 0) === (kind === undefined)) throw new UsageError('tasks redrive needs ids, or --kind');
    const redriven = await tasksOf(context).redrive(typeof kind === 'string' ? { kind } : { ids });
    const none = redriven.length === 0;
    return {
      json: { redriven },
      lines: none ? ['nothing to redrive'] : redriven.map((id) => `${id}: PENDING`),
      failed: none,
    };
  },
};

export const TASK_COMMANDS: readonly DatabaseCommand[] = [list, show, cancel, redrive];

function tasksOf({ sql, schema }: DatabaseContext): Tasks<unknown, Record<string, never>> {
  return createTasks({ sql, schema, kinds: {} });
}

function onlyId(command: string, { operands }: DatabaseContext): string {
  const [id, ...others] = operands;
  if (id === undefined || others.length > 0) throw new UsageError(`${command} needs one id`);
  return id;
}

function missing(id: string): CommandResult {
  return {
    json: { error: { code: 'UNKNOWN', message: `there is no task ${id}` } },
    lines: [`there is no task ${id}`],
    failed: true,
  };
}

/** Inputs and results may hold what does not belong on every terminal. */
function withoutContent(task: Task): object {
  return Object.fromEntries(Object.entries(task).filter(([name]) => name !== 'input' && name !== 'result'));
}

function line(task: Task): string {
  const { id, kind, status, attempts, failures, lastError } = task;
  const error = lastError === undefined ? '' : `; ${lastError}`;
  return `${id} ${kind} ${status}, ${attempts} tries, ${failures} failures${error}`;
}
