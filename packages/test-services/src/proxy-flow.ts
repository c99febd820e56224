import { type Socket } from 'node:net';

/** What becomes of bytes that came in: carried on, held with all that follows, or lost with all that follows. */
export type Verdict = 'pass' | 'hold' | 'drop';

type Item =
  | { readonly kind: 'data'; readonly chunk: Buffer; readonly dueAt: number }
  | { readonly kind: 'fin' | 'rst'; readonly dueAt: number };

/** Bytes we take from one side before the other has taken them; above it the sender feels the slow reader. */
const aheadBytes = 1024 * 1024;

/**
 * Sends a RST. While the FIN of an earlier `end()` is on its way out the system refuses that (EINVAL), and Node then neither
 * closes the socket nor tells that it did not: the RST has to wait for the FIN.
 */
export const reset = (socket: Socket): void => {
  if (!socket.writableEnded || socket.writableFinished) socket.resetAndDestroy();
  // A peer that does not read would keep the FIN from going out for ever.
  else if (socket.writableLength > 0) socket.destroy();
  else socket.once('finish', () => socket.resetAndDestroy());
};

/** What a flow asks of its surroundings at each arrival. */
export interface FlowRules {
  delayMs(): number;
  judge(chunk: Buffer | undefined): Verdict;
  onHeld(): void;
  onLost(bytes: number): void;
}

/**
 * One direction of a connection. Bytes, FIN and RST are one queue, so that none overtakes another, whatever the delay:
 * a reset that follows a response reaches the client after that response.
 */
export class ProxyFlow {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #rules: FlowRules;
  readonly #queue: Item[] = [];
  #timer: NodeJS.Timeout | undefined;
  #held = false;
  #lost = false;

  constructor(from: Socket, to: Socket, rules: FlowRules) {
    this.#from = from;
    this.#to = to;
    this.#rules = rules;
    from.on('data', (chunk: Buffer) => {
      this.#arrive({ kind: 'data', chunk, dueAt: this.#dueAt() });
    });
    from.on('end', () => {
      this.#arriveEnd();
    });
    from.on('error', () => {
      this.#arrive({ kind: 'rst', dueAt: this.#dueAt() });
    });
    to.on('drain', () => from.resume());
    to.on('close', () => {
      this.discard();
    });
  }

  /** Whether something waits here for {@link release}. */
  get isHolding(): boolean {
    return this.#held && this.#queue.length > 0;
  }

  #dueAt(): number {
    return performance.now() + this.#rules.delayMs();
  }

  /**
   * A RST close behind the last bytes shows as an end of the stream too. A write of nothing tells the two apart: it
   * sends nothing, and it fails on a connection that was reset (which 'error' then reports).
   */
  #arriveEnd(): void {
    const dueAt = this.#dueAt();
    const fin = (error?: Error | null): void => {
      if (!error) this.#arrive({ kind: 'fin', dueAt });
    };
    if (this.#from.writable && this.#from.writableLength === 0) this.#from.write(Buffer.alloc(0), fin);
    else fin();
  }

  #arrive(item: Item): void {
    if (this.#lost) {
      if (item.kind === 'data') this.#rules.onLost(item.chunk.length);
      return;
    }
    const verdict = this.#rules.judge(item.kind === 'data' ? item.chunk : undefined);
    if (verdict === 'drop') {
      this.#queue.push(item);
      this.lose();
      return;
    }
    if (verdict === 'hold') this.#held = true;
    this.#queue.push(item);
    if (this.#held) this.#rules.onHeld();
    this.#pump();
  }

  #pump(): void {
    clearTimeout(this.#timer);
    while (!this.#held) {
      const [item] = this.#queue;
      if (item === undefined) return;
      const waitMs = item.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => {
          this.#pump();
        }, waitMs);
        return;
      }
      this.#queue.shift();
      this.#deliver(item);
    }
  }

  #deliver(item: Item): void {
    if (this.#to.destroyed) return;
    if (item.kind === 'data') {
      this.#to.write(item.chunk);
      if (this.#to.writableLength > aheadBytes) this.#from.pause();
    } else if (item.kind === 'fin') {
      this.#to.end();
    } else {
      reset(this.#to);
    }
  }

  /** Holds everything from here on, also what is on its way. */
  hold(): void {
    this.#held = true;
    clearTimeout(this.#timer);
    if (this.#queue.length > 0) this.#rules.onHeld();
  }

  /** Carries on what was held, in its order. */
  release(): void {
    this.#held = false;
    this.#pump();
  }

  /** Loses what is on its way and all that follows: without the lost bytes the rest would be another stream. */
  lose(): void {
    this.#lost = true;
    for (const item of this.#queue) if (item.kind === 'data') this.#rules.onLost(item.chunk.length);
    this.discard();
  }

  /** Loses what is on its way, if there is anything. */
  loseQueued(): void {
    if (this.#queue.length > 0) this.lose();
  }

  discard(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
  }
}
