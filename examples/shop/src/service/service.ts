import type { Logger } from 'replaysafe';
import { createLifecycle, installSignals, type Lifecycle } from 'replaysafe/lifecycle';
import { environment, type Environment } from './environment.js';
import { createLogger } from './logger.js';
import { onParentGone } from './parent.js';

/** What every service of the shop has before it does anything of its own. */
export interface Service {
  readonly env: Environment;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
}

/** Logger, lifecycle and signals, all from the environment. Nothing listens yet. */
export function createService(name: string): Service {
  const env = environment();
  const logger = createLogger(
    env.text('INSTANCE', name),
    env.oneOf('LOG_LEVEL', ['debug', 'info', 'warn', 'error'], 'info'),
  );
  const lifecycle = createLifecycle({ name, logger, lameDuckMs: env.whole('LAME_DUCK_MS', 2_000) });
  installSignals(lifecycle);
  if (env.optional('ENDS_WITH_PARENT') === '1') {
    onParentGone(() => {
      logger.info({}, 'the process that started this one is gone');
      process.kill(process.pid, 'SIGTERM');
    });
  }
  return { env, logger, lifecycle };
}
