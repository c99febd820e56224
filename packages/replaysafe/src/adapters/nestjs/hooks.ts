import type { NestInstance, NestModule } from './types.js';

/** The hooks of the stop, in the order in which Nest calls them. */
export const STOP_HOOKS = ['onModuleDestroy', 'beforeApplicationShutdown', 'onApplicationShutdown'] as const;

export type StopHook = (typeof STOP_HOOKS)[number];

/** Runs a hook; never rejects. */
export type Guard = (name: string, call: () => unknown) => Promise<void>;

export interface Hooks {
  /** Calls all hooks of one kind as Nest does: module by module, those of a module at once and its class behind them. */
  run(hook: StopHook, signal: string | undefined): Promise<void>;
}

/**
 * Puts each hook of the stop behind a guard, in place, so that it runs once whoever calls it, and so that one that throws or
 * hangs does not keep Nest from the hooks behind it. What is alive per request has no such hooks in Nest either.
 */
export function guardHooks(modules: Iterable<NestModule>, except: ReadonlySet<unknown>, guard: Guard): Hooks {
  const guarded = new Map<object, Partial<Record<StopHook, (signal?: string) => Promise<void>>>>();
  const guardInstance = (instance: object): void => {
    if (guarded.has(instance) || except.has(instance)) return;
    guarded.set(instance, Object.fromEntries(STOP_HOOKS.flatMap((hook) => guardHook(instance, hook, guard))));
  };

  const nearToFar = [...modules].sort((a, b) => b.distance - a.distance).reverse();
  const stages = nearToFar.flatMap((module) => {
    const wrappers = [module.providers, module.controllers, module.injectables, module.middlewares].flatMap((part) => [
      ...part.values(),
    ]);
    const ownClass = wrappers.filter(({ token }) => token === module.metatype);
    const others = wrappers.filter(({ token }) => token !== module.metatype);
    return [instancesOf(others), instancesOf(ownClass)];
  });
  for (const stage of stages) stage.forEach(guardInstance);

  return {
    run: async (hook, signal) => {
      for (const stage of stages) {
        await Promise.all(stage.map(async (instance) => guarded.get(instance)?.[hook]?.(signal)));
      }
    },
  };
}

function instancesOf(wrappers: readonly NestInstance[]): object[] {
  const found = wrappers
    .filter((wrapper) => wrapper.isDependencyTreeStatic())
    .flatMap((wrapper) =>
      wrapper.isTransient
        ? wrapper.getStaticTransientInstances().map((transient) => transient?.instance)
        : [wrapper.instance],
    );
  return found.filter((instance): instance is object => typeof instance === 'object' && instance !== null);
}

function guardHook(instance: object, hook: StopHook, guard: Guard): [StopHook, (signal?: string) => Promise<void>][] {
  const original: unknown = (instance as Readonly<Record<string, unknown>>)[hook];
  if (typeof original !== 'function') return [];
  // A null prototype has no constructor.
  const className = (instance as { readonly constructor?: { readonly name: string } }).constructor?.name ?? 'Object';
  let ran: Promise<void> | undefined;
  const once = (signal?: string): Promise<void> =>
    (ran ??= guard(`${className}.${hook}`, () => original.call(instance, signal) as unknown));
  // A frozen instance keeps its own hook; Nest calls that one as ever.
  Reflect.defineProperty(instance, hook, { value: once, writable: true, configurable: true });
  return [[hook, once]];
}
