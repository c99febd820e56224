/** One program run, with the system user it runs as. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
}

/** What the supervisor is to run. */
export interface ServiceSpec {
  /** Temporary folder of the service, removed when it stops. `service.log` in it takes all output. */
  readonly folder: string;
  /** Run one after the other before the service; the first that fails ends the start. */
  readonly prepare: readonly Command[];
  readonly run: Command;
  /** Run after the service ended, before the folder is removed. */
  readonly cleanup?: readonly Command[];
  readonly stopSignal: NodeJS.Signals;
  /** Ends the service as a crash does: nothing is flushed or handed over. */
  readonly crashSignal: NodeJS.Signals;
  /** Run instead of sending `crashSignal`, where the process we see is not the service itself. */
  readonly crashCommand?: Command;
  /** Milliseconds after which a service that was told to stop is SIGKILLed. */
  readonly stopWithinMs: number;
}

/** Words from the program that uses the service. */
export type ToSupervisor = 'stop' | 'crash' | 'start';

/** Reports to the program that uses the service. */
export type FromSupervisor =
  | { readonly kind: 'started'; readonly pid: number }
  | {
      readonly kind: 'ended';
      readonly during: string;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly error?: string;
    };
