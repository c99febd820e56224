import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Clock } from '../ports/clock.js';

type Controller = Dispatcher.DispatchController;

/** Who is told how one try went. */
export interface ExchangeOwner {
  /** The try has its outcome: an answer, or `failure` is set. */
  ended(exchange: Exchange): void;
  /** Nothing of the try is left in the pool: its slot is free. Comes once, after `ended` or with it. */
  released(): void;
}

/**
 * One try on the wire: the pool's own handler, so that no stream, no abort controller and no listener is made for it.
 * Collects the answer whole.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  status = 0;
  headers: IncomingHttpHeaders = {};
  readonly chunks: Buffer[] = [];
  failure: Error | undefined;
  /** Whether the request was put on a connection. Before that nothing can have been executed. */
  sent = false;
  /** When it last came nearer to its end, by the monotonic clock. */
  progressAt: number;
  readonly #clock: Clock;
  readonly #owner: ExchangeOwner;
  #controller: Controller | undefined;
  #ended = false;

  constructor(owner: ExchangeOwner, clock: Clock) {
    this.#owner = owner;
    this.#clock = clock;
    this.progressAt = clock.monotonicMs();
  }

  /** Ends this try and no other, in this tick. */
  abort(reason: Error): void {
    if (this.#ended) return;
    if (this.#controller !== undefined) {
      this.#controller.abort(reason);
      return;
    }
    // Still waiting for a connection: the pool lets go of it when it has one, or none.
    this.#end(reason);
  }

  onRequestStart(controller: Controller): void {
    if (this.#ended) {
      controller.abort(this.failure ?? new Error('given up'));
      return;
    }
    if (this.sent) {
      // The pool would put a request on a second connection that the first may have carried. Whether to repeat is decided above.
      controller.abort(new Error('the connection was lost with the request on it'));
      return;
    }
    this.sent = true;
    this.progressAt = this.#clock.monotonicMs();
    this.#controller = controller;
  }

  onResponseStart(_controller: Controller, status: number, headers: IncomingHttpHeaders): void {
    this.status = status;
    this.headers = headers;
    this.progressAt = this.#clock.monotonicMs();
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    this.chunks.push(chunk);
    this.progressAt = this.#clock.monotonicMs();
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#owner.ended(this);
    this.#owner.released();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#end(error);
    this.#owner.released();
  }

  #end(failure: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.failure = failure;
    this.#owner.ended(this);
  }
}
