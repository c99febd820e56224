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
  const lifecycle = createLifecycle({
    name,
    logger,
    // What the manifest gives, told by the manifest itself, so that the two cannot disagree unseen.
    graceMs: env.whole('GRACE_MS', 60_000),
    preStopMs: env.whole('PRE_STOP_MS', 0),
    propagationDelayMs: env.whole('PROPAGATION_DELAY_MS', 0),
    lameDuckMs: env.whole('LAME_DUCK_MS', 2_000),
  });
  const reportFile = env.optional('TERMINATION_LOG');
  installSignals(lifecycle, reportFile === undefined ? {} : { reportFile });
  if (env.optional('ENDS_WITH_PARENT') === '1') {
    onParentGone(() => {
      logger.info({}, 'the process that started this one is gone');
      process.kill(process.pid, 'SIGTERM');
    });
  }
  return { env, logger, lifecycle };
}
