import { ReplaysafeError } from '../errors.js';
import { emit, hasListeners } from '../events.js';
import type { Timer } from '../ports/clock.js';
import { REFUSED } from './breaker.js';
import type { PreparedCall } from './call.js';
import type { Core } from './core.js';
import type { Ending } from './deadlines.js';
import { Exchange, type ExchangeOwner } from './exchange.js';
import { failureOf, outcomeUnknown, type GiveUp, type TryFailure } from './failure.js';
import { isRead, isSafeToRepeat, mayRepeat } from './policy.js';
import { retryWait } from './retry-wait.js';
import { limitOf, TryTimeout } from './try-timeout.js';
import { isRefusedUnexecuted, isRetryableAnswer, ReceivedResponse, verdictOf, type HttpResponse } from './response.js';

export interface Settle {
  readonly resolve: (response: HttpResponse) => void;
  readonly reject: (error: unknown) => void;
}

/** How a further try that was never sent leaves the call: the answer before it, if there was one, says more. */
type Outcome = { readonly response: ReceivedResponse } | { readonly failure: TryFailure };

/**
 * One operation on its way through the layers: deadline, retry, breaker, bulkhead, pool. On the happy path it is two objects (this
 * and its exchange) and a promise; timers exist only while it waits between tries.
 */
export class RunningCall implements Ending, ExchangeOwner {
  /** The next moment at which something may have taken too long: a try, or the whole. */
  at: number;
  slot = -1;
  /** The total deadline. */
  readonly #endsAt: number;
  readonly #core: Core;
  readonly #call: PreparedCall;
  readonly #settle: Settle;
  readonly #caller: AbortSignal | undefined;
  #attempt = 0;
  #startedAt: number;
  #permit = REFUSED;
  #exchange: Exchange | undefined;
  #queued: Ending | undefined;
  #backoff: Timer | undefined;
  #last: Outcome | undefined;
  #givenUp: GiveUp | undefined;
  #maybeExecuted = false;
  #done = false;

  constructor(core: Core, call: PreparedCall, totalMs: number, caller: AbortSignal | undefined, settle: Settle) {
    this.#core = core;
    this.#call = call;
    this.#settle = settle;
    this.#caller = caller;
    this.#startedAt = core.clock.monotonicMs();
    this.#endsAt = this.#startedAt + totalMs;
    this.at = Math.min(this.#endsAt, this.#startedAt + core.settings.timeouts.connectMs);
    core.deadlines.add(this);
    if (caller !== undefined) core.callers.listen(caller, this);
    this.#try();
  }

  /** Finds out what has taken too long; if nothing has, comes back when something may have. */
  expire(): void {
    const now = this.#core.clock.monotonicMs();
    if (now >= this.#endsAt) {
      this.giveUp('timed-out', new Error('the deadline of the call is reached'));
      return;
    }
    const limit = this.#exchange && limitOf(this.#exchange, this.#core.settings.timeouts);
    const tooLong = limit !== undefined && now >= limit.at;
    this.#watchUntil(limit === undefined || tooLong ? this.#endsAt : Math.min(this.#endsAt, limit.at));
    if (tooLong) this.#exchange?.abort(new TryTimeout(limit.code));
  }

  #watchUntil(at: number): void {
    const { deadlines } = this.#core;
    deadlines.remove(this);
    this.at = at;
    deadlines.add(this);
  }

  onCallerAbort(): void {
    this.giveUp('aborted', this.#caller?.reason);
  }

  /** Ends the call in this tick, whatever it waits for. */
  giveUp(why: GiveUp, reason: unknown): void {
    if (this.#done) return;
    this.#givenUp = why;
    if (this.#exchange !== undefined) {
      this.#exchange.abort(reason instanceof Error ? reason : new Error('given up', { cause: reason }));
      return;
    }
    this.#settleUnsent(this.#unsent(why, reason));
  }

  /** The process stops: what runs may end, what waits may not begin. */
  stopWaiting(): void {
    if (this.#exchange === undefined) this.giveUp('stopped', undefined);
  }

  #unsent(why: GiveUp, cause: unknown): ReplaysafeError {
    if (why === 'aborted') return new ReplaysafeError('RS_CLIENT_ABORTED', { cause });
    if (why === 'stopped') return new ReplaysafeError('RS_CLIENT_STOPPED', { cause });
    return new ReplaysafeError('RS_CLIENT_OVERLOADED', {
      cause,
      detail: 'the deadline passed while it waited to be sent',
    });
  }

  #try(): void {
    const { breaker, bulkhead, stopping } = this.#core;
    this.#attempt++;
    this.#permit = breaker.admit(isSafeToRepeat(this.#call));
    if (this.#permit === REFUSED) {
      this.#refuse(
        'breaker',
        new ReplaysafeError('RS_CLIENT_SYSTEM_UNAVAILABLE', { detail: 'the circuit breaker is open' }),
      );
      return;
    }
    const entry = bulkhead.enter(this);
    if (entry === 'run') {
      this.#send();
      return;
    }
    if (entry === 'full') {
      breaker.settle(this.#permit, 'ignored');
      this.#refuse('bulkhead', overloaded('as many calls as may wait are waiting'));
      return;
    }
    this.#queue();
    if (stopping) this.giveUp('stopped', undefined);
  }

  #queue(): void {
    const { clock, deadlines, settings } = this.#core;
    const at = Math.min(this.#endsAt, clock.monotonicMs() + settings.bulkhead.queueMs);
    const expire = (): void => {
      this.#refuse('bulkhead', overloaded('no slot became free in time'));
    };
    this.#queued = { at, slot: -1, expire };
    deadlines.add(this.#queued);
  }

  /** The bulkhead hands a slot over. */
  granted(): void {
    const { breaker, deadlines } = this.#core;
    if (this.#done) {
      this.#core.freeSlot();
      return;
    }
    if (this.#queued !== undefined) deadlines.remove(this.#queued);
    this.#queued = undefined;
    if (!breaker.honours(this.#permit)) this.#permit = breaker.admit(isSafeToRepeat(this.#call));
    if (this.#permit === REFUSED) {
      this.#core.freeSlot();
      this.#refuse(
        'breaker',
        new ReplaysafeError('RS_CLIENT_SYSTEM_UNAVAILABLE', { detail: 'the circuit breaker is open' }),
      );
      return;
    }
    this.#send();
  }

  #send(): void {
    const { name, clock, pool, settings } = this.#core;
    const { method } = this.#call;
    if (this.#attempt > 1) this.#startedAt = clock.monotonicMs();
    const connectBy = this.#startedAt + settings.timeouts.connectMs;
    if (connectBy < this.at) this.#watchUntil(connectBy);
    if (hasListeners('client.attempted')) emit('client.attempted', { client: name, method, attempt: this.#attempt });
    this.#exchange = new Exchange(this, clock);
    pool.dispatch(this.#call, this.#exchange);
  }

  ended(exchange: Exchange): void {
    this.#exchange = undefined;
    if (exchange.failure === undefined) this.#answered(exchange);
    else this.#failed(exchange);
  }

  released(): void {
    this.#core.freeSlot();
  }

  #answered({ status, headers, chunks }: Exchange): void {
    const { name, clock, breaker, budget } = this.#core;
    const { method } = this.#call;
    const response = new ReceivedResponse(status, headers, chunks, this.#attempt, clock);
    breaker.settle(this.#permit, verdictOf(response));
    if (hasListeners('client.answered')) {
      const durationMs = clock.monotonicMs() - this.#startedAt;
      emit('client.answered', { client: name, method, attempt: this.#attempt, status, durationMs });
    }
    if (status < 400 || !isRetryableAnswer(response)) {
      budget.earn();
      this.#finish();
      this.#settle.resolve(response);
      return;
    }
    if (!isRead(method) && !isRefusedUnexecuted(response)) this.#maybeExecuted = true;
    this.#again({ response }, response.retryAfterMs);
  }

  #failed(exchange: Exchange): void {
    const { name, breaker, logger } = this.#core;
    const { method } = this.#call;
    const failure = failureOf(this.#call, exchange, this.#givenUp);
    const { code } = failure.error;
    breaker.settle(this.#permit, failure.ill ? 'failed' : 'ignored');
    if (failure.maybeExecuted) this.#maybeExecuted = true;
    emit('client.failed', { client: name, method, attempt: this.#attempt, code });
    logger.info({ client: name, method, attempt: this.#attempt, code }, 'a try ended without an answer');
    if (failure.transient) this.#again({ failure }, 0);
    else this.#settleWith({ failure });
  }

  /** Waits for the next try without holding a slot, or settles where there is none. */
  #again(outcome: Outcome, askedMs: number): void {
    const { name, clock, stopping } = this.#core;
    const { method } = this.#call;
    const wait = this.#waitBeforeNext(askedMs);
    if (wait === undefined) {
      this.#settleWith(outcome);
      return;
    }
    this.#last = outcome;
    emit('client.backed-off', { client: name, method, attempt: this.#attempt, delayMs: wait });
    if (stopping) {
      this.giveUp('stopped', undefined);
      return;
    }
    this.#backoff = clock.setTimer(wait, () => {
      this.#backoff = undefined;
      this.#try();
    });
  }

  /** Undefined where another try is not allowed, or the wait does not fit the deadline. */
  #waitBeforeNext(askedMs: number): number | undefined {
    const { name, clock, random, budget, settings } = this.#core;
    const { tries, baseMs, capMs } = settings.retry;
    const attempt = this.#attempt;
    if (this.#givenUp !== undefined || attempt >= tries || !mayRepeat(this.#call)) return undefined;
    const wait = retryWait(attempt, askedMs, this.#endsAt - clock.monotonicMs(), { baseMs, capMs, random });
    if (wait === undefined || budget.spend()) return wait;
    emit('client.budget-spent', { client: name, method: this.#call.method, attempt });
    return undefined;
  }

  #refuse(reason: 'breaker' | 'bulkhead', error: ReplaysafeError): void {
    const { name } = this.#core;
    emit('client.refused', { client: name, method: this.#call.method, reason });
    this.#settleUnsent(error);
  }

  /** A try that was not sent: what the tries before it brought counts. */
  #settleUnsent(error: ReplaysafeError): void {
    if (this.#last !== undefined && 'response' in this.#last && this.#givenUp !== 'aborted') {
      this.#settleWith(this.#last);
      return;
    }
    this.#finish();
    this.#settle.reject(this.#maybeExecuted ? outcomeUnknown(this.#call, error) : error);
  }

  #settleWith(outcome: Outcome): void {
    this.#finish();
    if ('response' in outcome) {
      this.#settle.resolve(outcome.response);
      return;
    }
    const { error, maybeExecuted } = outcome.failure;
    // The last try was not executed for sure; an earlier one may have been.
    const unknown = this.#maybeExecuted && !maybeExecuted;
    this.#settle.reject(unknown ? outcomeUnknown(this.#call, error, error.code) : error);
  }

  #finish(): void {
    const { deadlines, bulkhead, breaker, callers } = this.#core;
    this.#done = true;
    deadlines.remove(this);
    if (this.#caller !== undefined) callers.forget(this.#caller, this);
    this.#backoff?.cancel();
    if (this.#queued === undefined) return;
    deadlines.remove(this.#queued);
    bulkhead.withdraw(this);
    breaker.settle(this.#permit, 'ignored');
  }
}

function overloaded(detail: string): ReplaysafeError {
  return new ReplaysafeError('RS_CLIENT_OVERLOADED', { detail });
}
