import type { FastifyReply } from 'fastify';
import type { HttpAnswer, IdempotencyContext, Run } from '../../idempotency/index.js';
import { Deferred } from './deferred.js';
import { asAnswer, dropPayload, keepQuiet } from './fastify-payload.js';

/**
 * - `claiming`: the engine decides whether the handler runs at all
 * - `running`: the handler is at work and has not replied
 * - `failed`: it threw or sent an error; Fastify prepares its reply to that
 * - `held`: a reply waits until the transaction has ended
 * - `settled`: the engine has spoken; whatever is sent from here on passes
 */
type Phase = 'claiming' | 'running' | 'failed' | 'held' | 'settled';

const CLAIMED = Symbol('claimed');
/** Goes through Fastify in place of an answer that `hold` puts there at the end of the way. */
const PLACEHOLDER = Buffer.alloc(0);
/** Never the same promise twice: each of its readers would be remembered for as long as it lives. */
const never = (): Promise<never> => new Promise(() => undefined);

/** One guarded request between Fastify, whose handler replies when it likes, and the engine, which sends after COMMIT. */
export class FastifyExchange {
  readonly #reply: FastifyReply;
  /** What hooks had set before the handler: it stays when the handler's answer is replaced. */
  readonly #headersBefore: ReturnType<FastifyReply['getHeaders']>;
  readonly #handlersAnswer = new Deferred<HttpAnswer>();
  #phase: Phase = 'claiming';
  #outcome: Promise<HttpAnswer> = never();
  #handedOver: HttpAnswer | undefined;
  /** An answer that takes the place of whatever is being sent. */
  #instead: HttpAnswer | undefined;
  context: IdempotencyContext | undefined;

  constructor(reply: FastifyReply) {
    this.#reply = reply;
    this.#headersBefore = reply.getHeaders();
  }

  /**
   * The route's handler as Fastify sees it: what it returns is sent, what it throws goes the way of errors.
   *
   * @param engine answers the request, perhaps by running the handler
   */
  async serve(engine: (run: Run<unknown>) => Promise<HttpAnswer>, handler: () => unknown): Promise<unknown> {
    const claimed = new Deferred<typeof CLAIMED>();
    this.#outcome = engine((context) => {
      if (this.#phase !== 'claiming')
        return Promise.reject(new Error('the request was answered before its handler ran'));
      this.context = context;
      this.#phase = 'running';
      claimed.resolve(CLAIMED);
      return this.#handlersAnswer.promise;
    });
    // A handler that replies past Fastify leaves nobody to hear of a failure.
    this.#outcome.catch(() => undefined);
    const first = await Promise.race([claimed.promise, this.#outcome]);
    if (first !== CLAIMED) return this.#sendInstead(first);
    this.#reply.raw.once('finish', this.#onFinish);
    const result = handler();
    // A handler that returns nothing replies later; the reply is a thenable that waits for it.
    const finished = Promise.resolve(result === undefined ? this.#reply : result);
    return Promise.race([finished, this.#endedWithoutHandler()]);
  }

  /** onSend: keeps the serialised reply until the transaction has ended, and replaces it where the engine says so. */
  async hold(payload: unknown): Promise<unknown> {
    switch (this.#phase) {
      case 'claiming':
        // Something else replied, e.g. a time-out of Fastify's: the handler has nothing to do any more.
        this.#phase = 'settled';
        return payload;
      case 'running':
        this.#handedOver = asAnswer(this.#reply, payload);
        this.#handlersAnswer.resolve(this.#handedOver);
        return this.#release(payload, false);
      case 'failed':
        return this.#release(payload, true);
      case 'held':
        // A second reply, while the first is held: it must not overtake it, and there is nothing to tell its sender.
        return never();
      case 'settled':
        return this.#instead === undefined ? payload : this.#put(this.#instead);
    }
  }

  /** onError: the handler threw, or sent an error. Nothing of it is committed. */
  fail(error: unknown): void {
    if (this.#phase !== 'running') return;
    this.#phase = 'failed';
    this.#handlersAnswer.reject(error);
  }

  async #release(payload: unknown, errorReply: boolean): Promise<unknown> {
    this.#phase = 'held';
    keepQuiet(payload);
    let answer: HttpAnswer;
    try {
      answer = await this.#outcome;
    } catch (error) {
      this.#phase = 'settled';
      if (errorReply) return payload;
      // COMMIT refused what the handler had already answered.
      dropPayload(payload);
      this.#restoreHeaders();
      throw error;
    }
    this.#phase = 'settled';
    if (answer === this.#handedOver) return payload;
    dropPayload(payload);
    return this.#put(answer);
  }

  #sendInstead(answer: HttpAnswer): Buffer {
    this.#phase = 'settled';
    this.#instead = answer;
    return PLACEHOLDER;
  }

  /** The transaction was cut at its deadline while the handler goes on: the engine's problem is sent, the handler's reply is not. */
  async #endedWithoutHandler(): Promise<unknown> {
    const answer = await this.#outcome.catch((error: unknown) => {
      if (this.#phase === 'running') throw error;
      return never();
    });
    return this.#phase === 'running' ? this.#sendInstead(answer) : never();
  }

  #put(answer: HttpAnswer): unknown {
    this.#instead = undefined;
    this.#restoreHeaders();
    this.#reply.code(answer.status);
    for (const [name, value] of Object.entries(answer.headers)) {
      this.#reply.header(name, typeof value === 'string' ? value : [...value]);
    }
    return typeof answer.body === 'object' && answer.body !== null ? Buffer.from(answer.body) : answer.body;
  }

  #restoreHeaders(): void {
    for (const name of Object.keys(this.#reply.getHeaders())) {
      if (!Object.hasOwn(this.#headersBefore, name)) this.#reply.removeHeader(name);
    }
    this.#reply.removeHeader('set-cookie');
    this.#reply.headers(this.#headersBefore);
  }

  /** The handler wrote to the socket itself. It is done, and what it sent was not seen. */
  readonly #onFinish = (): void => {
    if (this.#phase !== 'running') return;
    this.#phase = 'held';
    const { statusCode: status } = this.#reply.raw;
    this.#handedOver = { status, headers: {}, body: null, bodyUnavailable: true };
    this.#handlersAnswer.resolve(this.#handedOver);
  };
}
