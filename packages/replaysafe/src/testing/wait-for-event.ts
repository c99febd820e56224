import { onEvent, type EventName, type EventPayloads } from '../events.js';
import { systemClock } from '../ports/clock.js';

export interface WaitForEventOptions {
  /** Default 10000. */
  readonly timeoutMs?: number;
}

/**
 * The payload of the first event of that name, from now on, that the predicate accepts: what a test waits for instead of sleeping.
 * Call it before what causes the event. Rejects after `timeoutMs`, and with what the predicate throws.
 */
export function waitForEvent<Name extends EventName>(
  name: Name,
  predicate: (payload: EventPayloads[Name]) => boolean = () => true,
  options: WaitForEventOptions = {},
): Promise<EventPayloads[Name]> {
  const timeoutMs = options.timeoutMs ?? 10_000;
  return new Promise((resolve, reject) => {
    let others = 0;
    const end = (): void => {
      timer.cancel();
      subscription.unsubscribe();
    };
    const subscription = onEvent(name, (payload) => {
      // The publisher must not see what a test's predicate throws.
      try {
        if (!predicate(payload)) {
          others++;
          return;
        }
        end();
        resolve(payload);
      } catch (error) {
        end();
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    const timer = systemClock.setTimer(timeoutMs, () => {
      end();
      reject(new Error(`no event ${name} in ${timeoutMs} ms that was waited for (${others} others of that name)`));
    });
  });
}
