/* eslint-disable @typescript-eslint/no-explicit-any -- Nest's own types say `any` here; ours must fit where they are asked for */

/** What Nest takes among the `imports` of a module. */
export interface NestDynamicModule {
  module: any;
  global?: boolean;
  imports?: any[];
  providers?: any[];
  exports?: any[];
}

/** The part of `InstanceWrapper` that is read. */
export interface NestInstance {
  readonly token: unknown;
  readonly instance: unknown;
  readonly isTransient: boolean;
  isDependencyTreeStatic(): boolean;
  getStaticTransientInstances(): readonly ({ readonly instance: unknown } | undefined)[];
}

/** The part of Nest's record of a module that is used. */
export interface NestModule {
  /** From the root; hooks of the start run from far to near, those of the stop from near to far. */
  distance: number;
  readonly metatype: unknown;
  readonly providers: ReadonlyMap<unknown, NestInstance>;
  readonly controllers: ReadonlyMap<unknown, NestInstance>;
  readonly injectables: ReadonlyMap<unknown, NestInstance>;
  readonly middlewares: ReadonlyMap<unknown, NestInstance>;
}

/** The part of an HTTP adapter of Nest that is called; there is none in an application context. */
export interface NestHttpAdapter {
  getHttpServer(): unknown;
  getInstance(): unknown;
  close(): unknown;
}
