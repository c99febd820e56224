import { createServer, type AddressInfo, type Socket } from 'node:net';

/** A request as it came off the wire, perhaps cut. */
export interface RawArrival {
  readonly method: string;
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string | undefined;
  readonly body: Buffer;
  readonly connection: number;
  readonly nthOnConnection: number;
}

/** What the server does once it has read the request, or with `early` once it has read its head. */
export interface RawReaction {
  readonly early?: boolean;
  react(socket: Socket, arrival: RawArrival): void;
}

const whole = (react: RawReaction['react']): RawReaction => ({ react });

export const respond = (status: number, headers: Record<string, string> = {}, body = ''): RawReaction =>
  whole((socket) => {
    socket.write(head(status, { 'content-length': String(Buffer.byteLength(body)), ...headers }) + body);
  });

/** RST behind the head of the request, with its body still on the way. */
export const resetDuringRequest: RawReaction = { early: true, react: (socket) => void socket.resetAndDestroy() };

/** RST behind the whole request: it may have been executed. */
export const resetAfterRequest = whole((socket) => void socket.resetAndDestroy());

/** FIN instead of an answer. */
export const closeAfterRequest = whole((socket) => void socket.end());

/** RST in the middle of the answer's body. */
export const resetDuringAnswer = whole((socket) => {
  socket.write(head(200, { 'content-length': '100' }) + 'only a part', () => void socket.resetAndDestroy());
});

export const neverAnswer = whole(() => undefined);

/** The head comes when the test says so. */
export const respondAfter = (until: Promise<unknown>, status: number): RawReaction =>
  whole((socket) => {
    void until.then(() => socket.write(head(status, { 'content-length': '0' })));
  });

/** A head at once, then a byte every few milliseconds for ever. */
export const drip = whole((socket) => {
  socket.write(head(200, { 'transfer-encoding': 'chunked' }));
  const timer = setInterval(() => socket.write('1\r\n.\r\n'), 5);
  socket.on('close', () => {
    clearInterval(timer);
  });
});

export const talkNonsense = whole((socket) => void socket.write('220 mail.example ESMTP\r\n'));

export interface RawServer {
  readonly url: string;
  readonly arrivals: readonly RawArrival[];
  /** Connections accepted so far, those reset at once included. */
  readonly connections: number;
  /** Most requests that were unanswered at one time. */
  readonly mostAtOnce: number;
  arrived(count: number): Promise<void>;
  close(): Promise<void>;
}

export interface RawServerOptions {
  /** So many connections are reset before a byte is read. */
  readonly resetFirst?: number;
}

/** Speaks HTTP on bare sockets; reacts to the n-th request with the n-th reaction, the last one repeats. */
export async function rawServer(script: readonly RawReaction[], options: RawServerOptions = {}): Promise<RawServer> {
  const arrivals: RawArrival[] = [];
  const open = new Set<Socket>();
  const unanswered = new Set<Socket>();
  let connections = 0;
  let mostAtOnce = 0;
  let begun = 0;
  let waiting: { count: number; resolve: () => void }[] = [];

  const serve = (socket: Socket): void => {
    const connection = ++connections;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      open.delete(socket);
      unanswered.delete(socket);
    });
    if (connection <= (options.resetFirst ?? 0)) {
      socket.resetAndDestroy();
      return;
    }
    let received: Buffer[] = [];
    let length = 0;
    let needed = 0;
    let nthOnConnection = 0;
    let reaction: RawReaction | undefined;
    const write = socket.write.bind(socket);
    socket.write = ((...parameters: Parameters<Socket['write']>) => {
      unanswered.delete(socket);
      return write(...parameters);
    }) as Socket['write'];
    socket.on('data', (chunk) => {
      received.push(chunk);
      length += chunk.length;
      if (length < needed) return;
      const request = parse(Buffer.concat(received));
      if (request === undefined) return;
      if (reaction === undefined) {
        reaction = script[Math.min(begun++, script.length - 1)]!;
        unanswered.add(socket);
        mostAtOnce = Math.max(mostAtOnce, unanswered.size);
      }
      needed = request.needed;
      if (length < needed && reaction.early !== true) return;
      const arrival = { ...request.head, body: request.body, connection, nthOnConnection: ++nthOnConnection };
      arrivals.push(arrival);
      received = [];
      length = 0;
      needed = 0;
      const current = reaction;
      reaction = undefined;
      waiting = waiting.filter(({ count, resolve }) => {
        if (arrivals.length >= count) resolve();
        return arrivals.length < count;
      });
      current.react(socket, arrival);
    });
  };

  const server = createServer({ noDelay: true }, serve);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
    get connections() {
      return connections;
    },
    get mostAtOnce() {
      return mostAtOnce;
    },
    arrived: (count) =>
      arrivals.length >= count
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiting.push({ count, resolve });
          }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        for (const socket of open) socket.destroy();
      }),
  };
}

function head(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} X\r\n${lines.join('')}\r\n`;
}

function parse(received: Buffer) {
  const end = received.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [first, ...lines] = received.subarray(0, end).toString('latin1').split('\r\n');
  const [method, path] = first!.split(' ');
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':');
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
    }),
  );
  const body = received.subarray(end + 4);
  const needed = end + 4 + Number(headers['content-length'] ?? 0);
  return { head: { method: method!, path: path!, headers, key: headers['idempotency-key'] }, body, needed };
}
