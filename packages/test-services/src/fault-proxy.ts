import { once } from 'node:events';
import { createServer, connect, type Server, type Socket } from 'node:net';
import { ProxyFlow, reset, type Verdict } from './proxy-flow.js';

/** Where a proxy connects to. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Looks at bytes before they are carried on; `undefined` passes them. Chunks end anywhere: see {@link match}. */
export type DataHook = (chunk: Buffer, connection: ProxiedConnection) => Verdict | undefined;

/** Milliseconds by which each direction is late. */
export interface Delay {
  readonly toServerMs?: number;
  readonly toClientMs?: number;
}

/** Options of {@link startFaultProxy}. */
export interface FaultProxyOptions {
  readonly target: Target;
  /** Default: any free port. */
  readonly port?: number;
  readonly onClientData?: DataHook;
  readonly onServerData?: DataHook;
}

/** One connection through the proxy. */
export class ProxiedConnection {
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #toServer: ProxyFlow;
  readonly #toClient: ProxyFlow;
  /** Resolves when both sides are closed. */
  readonly closed: Promise<void>;

  /** @internal */
  constructor(client: Socket, server: Socket, proxy: FaultProxy) {
    this.#client = client;
    this.#server = server;
    const onHeld = (): void => {
      proxy.noteHeld(this);
    };
    const onLost = (bytes: number): void => {
      proxy.lostBytes += bytes;
    };
    this.#toServer = new ProxyFlow(client, server, {
      delayMs: () => proxy.delays.toServerMs,
      judge: (chunk) => proxy.judge(chunk, this, proxy.onClientData),
      onHeld,
      onLost,
    });
    this.#toClient = new ProxyFlow(server, client, {
      delayMs: () => proxy.delays.toClientMs,
      judge: (chunk) => proxy.judge(chunk, this, proxy.onServerData),
      onHeld,
      onLost,
    });
    const gone = (socket: Socket): Promise<void> =>
      new Promise((resolve) => {
        socket.once('close', () => {
          resolve();
        });
      });
    this.closed = Promise.all([gone(client), gone(server)]).then(() => undefined);
  }

  /** Whether bytes are held, in either direction. */
  get isHolding(): boolean {
    return this.#toClient.isHolding || this.#toServer.isHolding;
  }

  /** Holds everything the server sends from here on; what the client sends still passes. */
  withholdReplies(): void {
    this.#toClient.hold();
  }

  /** Carries on what is held, in both directions. */
  release(): void {
    this.#toServer.release();
    this.#toClient.release();
  }

  /** Resets both sides (RST). */
  cut(): void {
    this.#toServer.discard();
    this.#toClient.discard();
    reset(this.#client);
    reset(this.#server);
  }

  /** @internal */
  loseQueued(): void {
    this.#toServer.loseQueued();
    this.#toClient.loseQueued();
  }

  /** @internal */
  lose(): void {
    this.#toServer.lose();
    this.#toClient.lose();
  }
}

/**
 * A TCP proxy on 127.0.0.1 that does to connections what networks do. Without a fault it carries bytes, FIN (each
 * direction by itself), and RST as they come. A target that cannot be reached shows as a reset of the accepted
 * connection, since the client has been accepted by then.
 */
export class FaultProxy {
  readonly #server: Server;
  readonly #open = new Set<ProxiedConnection>();
  readonly #heldWaiters = new Set<(connection: ProxiedConnection) => void>();
  #target: Target;
  #mode: 'pass' | 'drop' | 'refuse' | 'withhold' = 'pass';
  #accepted = 0;
  /** Bytes that never arrived because of {@link drop} or a hook. */
  lostBytes = 0;
  /** @internal */
  delays: Required<Delay> = { toServerMs: 0, toClientMs: 0 };
  /** Sees what clients send; may be set anew at any time. */
  onClientData: DataHook | undefined;
  /** Sees what the server sends; may be set anew at any time. */
  onServerData: DataHook | undefined;

  /** @internal Use {@link startFaultProxy}. */
  constructor(server: Server, options: FaultProxyOptions) {
    this.#server = server;
    this.#target = options.target;
    this.onClientData = options.onClientData;
    this.onServerData = options.onServerData;
    server.on('connection', (client: Socket) => {
      this.#accept(client);
    });
  }

  /** Port on 127.0.0.1 that clients connect to. */
  get port(): number {
    const address = this.#server.address();
    return address === null || typeof address === 'string' ? 0 : address.port;
  }

  /** `127.0.0.1:<port>` */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** `url` with the host and port of this proxy instead of its own. */
  through(url: string): string {
    const changed = new URL(url);
    changed.host = this.address;
    return changed.href;
  }

  /** Connections open now. */
  get connections(): number {
    return this.#open.size;
  }

  /** Connections accepted since the start. */
  get accepted(): number {
    return this.#accepted;
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    if (this.#mode === 'refuse') {
      client.on('error', () => undefined);
      client.resetAndDestroy();
      return;
    }
    client.setNoDelay(true);
    const server = connect({ ...this.#target, allowHalfOpen: true, noDelay: true });
    const connection = new ProxiedConnection(client, server, this);
    this.#open.add(connection);
    void connection.closed.then(() => this.#open.delete(connection));
    if (this.#mode === 'drop') connection.lose();
    if (this.#mode === 'withhold') connection.withholdReplies();
  }

  /** @internal */
  judge(chunk: Buffer | undefined, connection: ProxiedConnection, hook: DataHook | undefined): Verdict {
    if (this.#mode === 'drop') return 'drop';
    return (chunk === undefined ? undefined : hook?.(chunk, connection)) ?? 'pass';
  }

  /** @internal */
  noteHeld(connection: ProxiedConnection): void {
    for (const waiter of this.#heldWaiters) waiter(connection);
    this.#heldWaiters.clear();
  }

  /** Resolves with a connection on which something is held; at once if there is one. */
  whenHeld(): Promise<ProxiedConnection> {
    for (const connection of this.#open) if (connection.isHolding) return Promise.resolve(connection);
    return new Promise((resolve) => this.#heldWaiters.add(resolve));
  }

  /** From now on what arrives is late by so many milliseconds: a number for each direction, or both alike. */
  delay(delay: number | Delay): void {
    const { toServerMs = 0, toClientMs = 0 } =
      typeof delay === 'number' ? { toServerMs: delay, toClientMs: delay } : delay;
    this.delays = { toServerMs, toClientMs };
  }

  /**
   * Loses everything, FIN and RST as well, in both directions: connections stay open and silent. One that lost
   * something stays silent after {@link resume} too.
   */
  drop(): void {
    this.#mode = 'drop';
    for (const connection of this.#open) connection.loseQueued();
  }

  /** Resets every open connection, on both sides (RST). New ones are accepted. */
  cut(): void {
    for (const connection of this.#open) connection.cut();
  }

  /** Resets every open connection and each new one at once: the server is down. */
  refuse(): void {
    this.#mode = 'refuse';
    this.cut();
  }

  /**
   * Lets requests reach the server, and holds everything the server sends, FIN and RST as well, on all connections,
   * until {@link resume} carries it on; or never, if the connections are cut.
   */
  withholdReplies(): void {
    this.#mode = 'withhold';
    for (const connection of this.#open) connection.withholdReplies();
  }

  /** Ends every fault: carries on what was held, without delay for what arrives from now on. Hooks stay. */
  resume(): void {
    this.#mode = 'pass';
    this.delay(0);
    for (const connection of this.#open) connection.release();
  }

  /** From now on new connections go to another server. */
  retarget(target: Target): void {
    this.#target = target;
  }

  /** Stops listening and resets what is open. Twice is harmless. */
  async stop(): Promise<void> {
    const closed = this.#server.listening ? once(this.#server, 'close') : Promise.resolve();
    this.#server.close();
    const open = [...this.#open];
    this.cut();
    await Promise.all([closed, ...open.map((connection) => connection.closed)]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Starts a TCP proxy before `target`. It passes everything until a fault is asked for. */
export const startFaultProxy = async (options: FaultProxyOptions): Promise<FaultProxy> => {
  // Half-open on both sides: else Node answers a FIN with its own, and a client that only ended its request would
  // seem to have gone.
  const server = createServer({ allowHalfOpen: true });
  const proxy = new FaultProxy(server, options);
  server.listen({ host: '127.0.0.1', port: options.port ?? 0 });
  await once(server, 'listening');
  return proxy;
};
