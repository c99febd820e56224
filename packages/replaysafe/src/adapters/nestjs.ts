import { Inject } from '@nestjs/common';
import { HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import {
  createLifecycle,
  installSignals,
  type Lifecycle,
  type LifecycleOptions,
  type ServerOptions,
  type SignalOptions,
} from '../lifecycle/index.js';
import { boolean, custom, integer, parseOptions } from '../options.js';
import { joinApplication, type FarthestHooks, type NearestHooks } from './nestjs/application.js';
import { serveHealth } from './nestjs/health.js';
import type { NestDynamicModule, NestHttpAdapter, NestModule } from './nestjs/types.js';

export type { NestDynamicModule } from './nestjs/types.js';

/** The injection token of the lifecycle. */
export const LIFECYCLE = Symbol.for('replaysafe:nestjs.lifecycle');

/** `constructor(@InjectLifecycle() private readonly lifecycle: Lifecycle) {}` */
export function InjectLifecycle(): PropertyDecorator & ParameterDecorator {
  return Inject(LIFECYCLE);
}

export interface ReplaysafeModuleOptions {
  /** A lifecycle, or the options of `createLifecycle` for one of the module's own. Default: all options at their defaults. */
  readonly lifecycle?: Lifecycle | LifecycleOptions;
  /**
   * Whether SIGTERM and SIGINT begin the stop and end the process with its exit code, and with which options. Default true. If
   * the application calls `installSignals` itself, say false and do not call `app.enableShutdownHooks()`.
   */
  readonly signals?: boolean | SignalOptions;
  /** Answer /health/live and /health/ready, without the global prefix. Default true. */
  readonly health?: boolean;
  /** How Nest's HTTP server is drained; false where the application registers it. Default: name `http`. */
  readonly server?: ServerOptions | false;
  /** How long the next hooks of Nest wait for one that does not end, in milliseconds. Default 5,000. */
  readonly hookMs?: number;
}

export interface ReplaysafeModuleAsyncOptions {
  readonly imports?: readonly unknown[];
  /** Tokens of what `useFactory` is given. */
  readonly inject?: readonly unknown[];
  readonly useFactory: (...dependencies: never[]) => ReplaysafeModuleOptions | Promise<ReplaysafeModuleOptions>;
}

const isObject = (given: unknown): boolean => typeof given === 'object' && given !== null;

const MODULE_OPTIONS = {
  lifecycle: custom<Lifecycle | LifecycleOptions>(
    (given) => (isObject(given) ? undefined : 'must be a lifecycle or the options of one'),
    {},
  ),
  signals: custom<boolean | SignalOptions>(
    (given) => (typeof given === 'boolean' || isObject(given) ? undefined : 'must be a boolean or an object'),
    true,
  ),
  health: boolean(true),
  server: custom<ServerOptions | false>(
    (given) => (given === false || isObject(given) ? undefined : 'must be an object or false'),
    {},
  ),
  hookMs: integer({ default: 5_000, min: 1 }),
} as const;

interface Joined {
  readonly lifecycle: Lifecycle;
  readonly nearest: NearestHooks;
  readonly farthest: FarthestHooks;
}

const OPTIONS = Symbol.for('replaysafe:nestjs.options');
const JOINED = Symbol.for('replaysafe:nestjs.joined');

/** Only there to be the module whose hooks are the last ones. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
class ReplaysafeLastModule {}

/**
 * Gives a Nest application (10 and later, Express or Fastify) a lifecycle, global, as {@link LIFECYCLE}. It drains the HTTP
 * server before any hook of Nest runs, and runs each hook once, whether the stop begins with a signal, `app.close()` or
 * `lifecycle.stop()`, with `app.enableShutdownHooks()` or without. Ready when the application is bootstrapped.
 *
 * @throws RS_OPTION_UNKNOWN, RS_OPTION_INVALID and what `createLifecycle` throws, while the application is created
 */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- a module of Nest is a class
export class ReplaysafeModule {
  static forRoot(options: ReplaysafeModuleOptions = {}): NestDynamicModule {
    return dynamicModule({ useFactory: () => options });
  }

  static forRootAsync(options: ReplaysafeModuleAsyncOptions): NestDynamicModule {
    return dynamicModule(options);
  }
}

function dynamicModule({ imports = [], inject = [], useFactory }: ReplaysafeModuleAsyncOptions): NestDynamicModule {
  const last: NestDynamicModule = {
    module: ReplaysafeLastModule,
    providers: [{ provide: 'replaysafe:last', inject: [JOINED], useFactory: ({ farthest }: Joined) => farthest }],
  };
  return {
    module: ReplaysafeModule,
    global: true,
    imports: [last, ...imports],
    providers: [
      { provide: OPTIONS, inject: [...inject], useFactory },
      { provide: JOINED, inject: [OPTIONS, HttpAdapterHost, ModulesContainer], useFactory: join },
      { provide: LIFECYCLE, inject: [JOINED], useFactory: ({ lifecycle }: Joined) => lifecycle },
      { provide: 'replaysafe:first', inject: [JOINED], useFactory: ({ nearest }: Joined) => nearest },
    ],
    exports: [JOINED, LIFECYCLE],
  };
}

function join(given: ReplaysafeModuleOptions, host: HttpAdapterHost, container: ModulesContainer): Joined {
  const { signals, health, server, hookMs, ...parsed } = parseOptions('ReplaysafeModule', MODULE_OPTIONS, given);
  const lifecycle = isLifecycle(parsed.lifecycle) ? parsed.lifecycle : createLifecycle(parsed.lifecycle);
  // First of all, so that a signal during the rest of the start closes what is open by then.
  const installed = signals === false ? undefined : installSignals(lifecycle, signals === true ? {} : signals);
  const adapter = host.httpAdapter as NestHttpAdapter | undefined;
  const modules = container as unknown as ReadonlyMap<string, NestModule>;
  // Nest calls hooks by distance from the root, so this is how to be the first, or the last, of all.
  for (const module of modules.values()) {
    if (module.metatype === ReplaysafeModule) module.distance = -1;
    if (module.metatype === ReplaysafeLastModule) module.distance = Infinity;
  }
  if (health) serveHealth(adapter, lifecycle);
  const uninstall =
    installed &&
    ((): void => {
      installed.uninstall();
    });
  return { lifecycle, ...joinApplication({ lifecycle, modules, adapter, server, hookMs, uninstall }) };
}

function isLifecycle(given: Lifecycle | LifecycleOptions): given is Lifecycle {
  return 'stop' in given && typeof given.stop === 'function';
}
