import { readFile } from 'node:fs/promises';
import { hasCode, ReplaysafeError } from 'replaysafe';
import { budgetOf, type LifecycleOptions, type PlannedBudget } from 'replaysafe/lifecycle';
import { UsageError } from '../command.js';

/** The options of a service's `createLifecycle`, read from a file of JSON. */
export interface BudgetFile {
  readonly file: string;
  /** One service's, or several by the name of their workload. */
  optionsOf(workload: string): LifecycleOptions | undefined;
  readonly names: readonly string[];
}

/** What is planned from options, or the arithmetic of why nothing can be. */
export type Plan =
  { readonly fits: true; readonly budget: PlannedBudget } | { readonly fits: false; readonly arithmetic: string };

/**
 * @throws UsageError where the file cannot be read, RS_OPTION_UNKNOWN and RS_OPTION_INVALID for what stands in it
 */
export async function readBudgetFile(file: string): Promise<BudgetFile> {
  const content = await parse(file);
  const entries = Object.entries(content);
  const isByName = entries.length > 0 && entries.every(([, value]) => isObject(value));
  const all = new Map<string, LifecycleOptions>(
    isByName ? entries.map(([name, value]) => [name, value as LifecycleOptions]) : [['', content]],
  );
  for (const options of all.values()) plan(options);
  return {
    file,
    names: isByName ? [...all.keys()] : [],
    optionsOf: (workload) => all.get(isByName ? workload : ''),
  };
}

/** @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID */
export function plan(options: LifecycleOptions): Plan {
  try {
    return { fits: true, budget: budgetOf(options) };
  } catch (error) {
    if (!hasCode(error, 'RS_LIFECYCLE_BUDGET') || !(error instanceof ReplaysafeError)) throw error;
    return { fits: false, arithmetic: error.message };
  }
}

async function parse(file: string): Promise<object> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new UsageError(
      `the budget ${file} cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`,
    );
  }
  try {
    const content: unknown = JSON.parse(text);
    if (isObject(content)) return content;
  } catch (error) {
    throw new UsageError(`the budget ${file} is no JSON: ${(error as Error).message}`);
  }
  throw new UsageError(`the budget ${file} must be one JSON object with options of createLifecycle`);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
