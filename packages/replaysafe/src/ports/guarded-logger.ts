import { type Logger } from './logger.js';

/** The same logger, except that its failure is not ours: a broken log transport must not break the stop. */
export function guardedLogger(logger: Logger): Logger {
  const guard =
    (level: keyof Logger) =>
    (fields: object, message: string): void => {
      try {
        logger[level](fields, message);
      } catch {
        // There is no place left to report it to.
      }
    };
  return { debug: guard('debug'), info: guard('info'), warn: guard('warn'), error: guard('error') };
}
