import { connect, type Socket } from 'node:net';
import { AnswerReader, type Answer } from './answer-reader.js';

/** Two processes cannot agree on an order that is closer than this; a server that had begun a request would not end it so soon. */
const SAME_MOMENT_MS = 25;

/** How the other side ended a connection. */
export type Ending = 'fin' | 'reset';

type Incoming = { readonly data: Buffer } | { readonly end: Ending };

/**
 * A connection on the level of bytes, behind a line that takes `oneWayMs` each way: bytes, FIN and RST arrive late and in
 * order. FIN, RST and a cut answer can be told apart, and so can a request that was written before the server's FIN came
 * from one that crossed it.
 */
export class RawClient {
  readonly #socket: Socket;
  readonly #oneWayMs: number;
  readonly #reader = new AnswerReader();
  readonly #waiting: (() => void)[] = [];
  #ended: Ending | undefined;
  /** By `performance.now()`, without the delay of the line: what the server had done when our bytes reached it. */
  #endedAt = Number.POSITIVE_INFINITY;
  #crossed = false;
  #begunAt = Number.NEGATIVE_INFINITY;
  #piecesOfRequest = 0;

  private constructor(socket: Socket, oneWayMs: number) {
    this.#socket = socket;
    this.#oneWayMs = oneWayMs;
    socket.setNoDelay(true);
    socket.on('data', (data: Buffer) => {
      this.#arrive({ data });
    });
    socket.once('end', () => {
      this.#endedAt = Math.min(this.#endedAt, performance.now());
      this.#arrive({ end: 'fin' });
    });
    socket.on('error', () => {
      this.#endedAt = Math.min(this.#endedAt, performance.now());
      this.#arrive({ end: 'reset' });
    });
  }

  /** Undefined where nobody listens any more. */
  static async connect(port: number, oneWayMs: number): Promise<RawClient | undefined> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const connected = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => {
        resolve(true);
      });
      socket.once('error', () => {
        resolve(false);
      });
    });
    if (!connected) return undefined;
    socket.removeAllListeners('error');
    const client = new RawClient(socket, oneWayMs);
    await delayed(2 * oneWayMs);
    return client;
  }

  send(bytes: string | Buffer): void {
    void delayed(this.#oneWayMs)
      // Behind a poll for input: on a busy machine a FIN may have been here for long, and nobody has looked.
      .then(() => new Promise(setImmediate))
      .then(() => {
        const ended = this.#endedAt < performance.now() || !this.#socket.writable;
        // What counts is where a request begins: one that is cut between two of its pieces is lost.
        if (this.#piecesOfRequest++ === 0) {
          this.#crossed = ended;
          this.#begunAt = performance.now();
        }
        if (!ended) this.#socket.write(bytes);
      });
  }

  /** The next answer, or how the connection ended before it was complete. */
  async answer(): Promise<Answer | Ending> {
    for (;;) {
      const answer = this.#reader.next();
      if (answer) {
        this.#piecesOfRequest = 0;
        return answer;
      }
      if (this.#ended !== undefined) return this.#reader.complete(this.#ended) ?? this.#ended;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Waits until the bytes that came so far satisfy a condition, or the connection has ended. */
  async sees(condition: (bytes: Buffer) => boolean): Promise<boolean> {
    for (;;) {
      if (condition(this.#reader.pending())) return true;
      if (this.#ended !== undefined) return false;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Waits until an answer begins to arrive, or the connection has ended. */
  async answerBegins(): Promise<boolean> {
    return this.sees(() => this.#reader.begun);
  }

  get ended(): Ending | undefined {
    return this.#ended;
  }

  /** Whether the server had ended the connection before the first bytes of our latest request could reach it. */
  get crossedTheEnd(): boolean {
    return this.#crossed || this.#endedAt - this.#begunAt < SAME_MOMENT_MS;
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.end();
    this.#socket.destroySoon();
  }

  #arrive(incoming: Incoming): void {
    void delayed(this.#oneWayMs).then(() => {
      if ('data' in incoming) this.#reader.push(incoming.data);
      else this.#ended ??= incoming.end;
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }
}

/** Timers of one length fire in the order in which they were set, so nothing overtakes anything. */
function delayed(ms: number): Promise<void> {
  return ms === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, ms));
}
