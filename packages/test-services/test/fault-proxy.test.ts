import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type FaultProxy, match, startFaultProxy } from '../src/index.js';
import { reset } from '../src/proxy-flow.js';

/** One side of a connection, with all that came in on it, in order: text, 'FIN', an error code, 'CLOSED'. */
class Side {
  readonly seen: string[] = [];
  readonly socket: Socket;
  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      const last = this.seen.at(-1);
      if (last?.startsWith('"')) this.seen[this.seen.length - 1] = `${last.slice(0, -1)}${chunk.toString()}"`;
      else this.seen.push(`"${chunk.toString()}"`);
    });
    socket.on('end', () => {
      this.seen.push('FIN');
      // A RST right behind the last bytes shows as an end first; a write of nothing brings it out.
      if (socket.writable) socket.write(Buffer.alloc(0));
    });
    socket.on('error', (error: NodeJS.ErrnoException) => this.seen.push(error.code ?? error.message));
  }
  saw(...expected: string[]): Promise<void> {
    return vi.waitFor(() => {
      expect(this.seen).toEqual(expected);
    });
  }
}

let server: Server;
let proxy: FaultProxy;
const accepted: Side[] = [];

/** A connection through the proxy, with the server's end of it once something has passed. */
const open = async (): Promise<{ client: Side; server: Side }> => {
  const count = accepted.length;
  const client = new Side(connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true }));
  await once(client.socket, 'connect');
  await vi.waitFor(() => {
    expect(accepted).toHaveLength(count + 1);
  });
  return { client, server: accepted[count]! };
};

beforeEach(async () => {
  accepted.length = 0;
  server = createServer({ allowHalfOpen: true }, (socket) => accepted.push(new Side(socket)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  proxy = await startFaultProxy({ target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } });
});
afterEach(async () => {
  await proxy.stop();
  for (const { socket } of accepted) socket.destroy();
  server.close();
});

describe('without a fault', () => {
  it('carries bytes both ways and counts connections', async () => {
    const first = await open();
    const second = await open();
    first.client.socket.write('one');
    second.client.socket.write('two');
    await first.server.saw('"one"');
    await second.server.saw('"two"');
    second.server.socket.write('answer');
    await second.client.saw('"answer"');
    expect([proxy.connections, proxy.accepted]).toEqual([2, 2]);

    first.client.socket.destroy();
    first.server.socket.destroy();
    await vi.waitFor(() => {
      expect([proxy.connections, proxy.accepted]).toEqual([1, 2]);
    });
  });

  it('carries the FIN of one direction while the other goes on', async () => {
    const { client, server } = await open();
    client.socket.end('request');
    await server.saw('"request"', 'FIN');
    server.socket.write('late');
    await client.saw('"late"');
    server.socket.end(' answer');
    await client.saw('"late answer"', 'FIN');
  });

  it('carries a RST of the client to the server as a RST', async () => {
    const { client, server } = await open();
    reset(client.socket);
    await server.saw('ECONNRESET');
  });

  it('carries a RST of the server to the client after the bytes before it', async () => {
    const { client, server } = await open();
    server.socket.write('half an answer');
    await client.saw('"half an answer"');
    server.socket.resetAndDestroy();
    await client.saw('"half an answer"', 'ECONNRESET');
  });

  it('does not make a FIN of a RST that comes close behind the bytes before it', async () => {
    const { client, server } = await open();
    server.socket.write('half an answer', () => server.socket.resetAndDestroy());
    await vi.waitFor(() => {
      expect(client.seen.at(-1)).toBe('ECONNRESET');
    });
  });

  it('lets the server feel a client that does not read', async () => {
    const { client, server } = await open();
    client.socket.pause();
    const chunk = Buffer.alloc(1024 * 1024);
    let written = 0;
    while (written < 256 && server.socket.writableLength < 8 * chunk.length) {
      server.socket.write(chunk);
      written += 1;
      await new Promise(setImmediate);
    }
    expect(written).toBeLessThan(256);
  });

  it('resets a client whose server cannot be reached', async () => {
    proxy.retarget({ host: '127.0.0.1', port: 1 });
    const client = new Side(connect({ port: proxy.port, host: '127.0.0.1' }));
    await client.saw('ECONNRESET');
  });
});

describe('delay', () => {
  it('makes each direction late by itself and keeps bytes before FIN', async () => {
    const { client, server } = await open();
    proxy.delay({ toClientMs: 200 });
    const begun = performance.now();
    client.socket.write('request');
    await server.saw('"request"');
    server.socket.end('answer');
    await client.saw('"answer"', 'FIN');
    expect(performance.now() - begun).toBeGreaterThanOrEqual(199);
  });

  it('does not let what comes after the delay overtake what came before', async () => {
    const { client, server } = await open();
    const arrived = new Promise<void>((resolve) => {
      proxy.onClientData = () => {
        resolve();
        return 'pass';
      };
    });
    proxy.delay(200);
    client.socket.write('first ');
    await arrived;
    proxy.delay(0);
    client.socket.write('second');
    await server.saw('"first second"');
  });
});

describe('drop', () => {
  it('loses everything silently, and what lost bytes stays silent after it', async () => {
    const { client, server } = await open();
    const idle = await open();
    proxy.drop();
    client.socket.write('lost');
    client.socket.end();
    await vi.waitFor(() => {
      expect(proxy.lostBytes).toBe(4);
    });
    proxy.resume();
    idle.client.socket.write('passes');
    await idle.server.saw('"passes"');
    server.socket.write('still open');
    await client.saw('"still open"');
    expect(server.seen).toEqual([]);
  });

  it('answers nothing on new connections either', async () => {
    proxy.drop();
    const { client, server } = await open();
    client.socket.write('lost');
    server.socket.write('lost too');
    await vi.waitFor(() => {
      expect(proxy.lostBytes).toBe(12);
    });
    proxy.resume();
    const later = await open();
    later.client.socket.write('passes');
    await later.server.saw('"passes"');
    expect([client.seen, server.seen]).toEqual([[], []]);
  });
});

describe('cut and refuse', () => {
  it('cut resets both sides and takes new connections', async () => {
    const { client, server } = await open();
    proxy.cut();
    await client.saw('ECONNRESET');
    await server.saw('ECONNRESET');
    const later = await open();
    later.client.socket.write('passes');
    await later.server.saw('"passes"');
  });

  it('refuse resets new connections too, until resume', async () => {
    const { client } = await open();
    proxy.refuse();
    await client.saw('ECONNRESET');
    const refused = new Side(connect({ port: proxy.port, host: '127.0.0.1' }));
    await refused.saw('ECONNRESET');
    proxy.resume();
    const later = await open();
    later.client.socket.write('passes');
    await later.server.saw('"passes"');
  });
});

describe('withheld replies', () => {
  it('lets requests through and holds all that the server says, in order, until resume', async () => {
    const { client, server } = await open();
    proxy.withholdReplies();
    client.socket.write('request');
    await server.saw('"request"');
    const held = proxy.whenHeld();
    server.socket.write('answer');
    await held;
    server.socket.end();
    client.socket.end(' and more');
    await server.saw('"request and more"', 'FIN');
    expect(client.seen).toEqual([]);
    proxy.resume();
    await client.saw('"answer"', 'FIN');
  });

  it('never arrive when the connection is cut', async () => {
    const { client, server } = await open();
    proxy.withholdReplies();
    server.socket.write('answer');
    const connection = await proxy.whenHeld();
    connection.cut();
    await connection.closed;
    await client.saw('ECONNRESET');
    await server.saw('ECONNRESET');
  });

  it('holds only the connection whose request matches, also when it comes in two chunks', async () => {
    const charged = await open();
    const other = await open();
    proxy.onClientData = match('POST /charges', (connection) => {
      connection.withholdReplies();
    });
    charged.client.socket.write('POST /cha');
    await charged.server.saw('"POST /cha"');
    charged.client.socket.write('rges');
    await charged.server.saw('"POST /charges"');
    other.client.socket.write('GET /charges');
    charged.server.socket.write('201');
    await proxy.whenHeld();
    other.server.socket.write('200');
    await other.client.saw('"200"');
    expect(charged.client.seen).toEqual([]);
    (await proxy.whenHeld()).release();
    await charged.client.saw('"201"');
  });

  it('holds from a reply that matches on, and passes what came before', async () => {
    const { client, server } = await open();
    proxy.onServerData = match('COMMIT\0', () => 'hold');
    server.socket.write('BEGIN\0');
    await client.saw('"BEGIN\0"');
    server.socket.write('COMMIT\0');
    const connection = await proxy.whenHeld();
    server.socket.write('and after');
    expect(client.seen).toEqual(['"BEGIN\0"']);
    connection.release();
    await client.saw('"BEGIN\0COMMIT\0and after"');
  });

  it('drops one direction from a match on, while the other goes on', async () => {
    const { client, server } = await open();
    proxy.onServerData = match('secret', () => 'drop');
    server.socket.write('secret');
    server.socket.end('more');
    client.socket.write('hello');
    await server.saw('"hello"');
    expect(client.seen).toEqual([]);
  });
});

it('closes a socket that is to be reset while its FIN is on the way', async () => {
  const { client, server: peer } = await open();
  const closed = once(client.socket, 'close');
  client.socket.end();
  reset(client.socket);
  await closed;
  await peer.saw('ECONNRESET');
});

it('stops under open connections, and twice', async () => {
  const { client, server } = await open();
  await Promise.all([proxy.stop(), proxy.stop()]);
  await proxy.stop();
  await client.saw('ECONNRESET');
  await server.saw('ECONNRESET');
  expect(proxy.connections).toBe(0);
});
