import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

/** A connection on the level of bytes, so that FIN, RST and a cut answer can be told apart. */
export interface RawConnection {
  readonly socket: Socket;
  send(text: string): void;
  /** Everything received so far. */
  received(): string;
  /** Resolves when the text has been received. */
  sees(text: string): Promise<void>;
  /** How the other side ended it. */
  readonly ended: Promise<'fin' | 'reset'>;
}

/** With `stay`, the client does not answer a FIN with its own. */
export async function rawConnect(port: number, { stay = false } = {}): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let received = '';
  let look = (): void => undefined;
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    look();
  });
  const ended = new Promise<'fin' | 'reset'>((resolve) => {
    socket.once('end', () => {
      resolve('fin');
      if (!stay) socket.end();
    });
    socket.once('error', () => {
      resolve('reset');
    });
  });
  await once(socket, 'connect');
  return {
    socket,
    ended,
    send: (text) => void socket.write(text),
    received: () => received,
    sees: (text) =>
      new Promise((resolve) => {
        const before = look;
        look = () => {
          before();
          if (received.includes(text)) resolve();
        };
        look();
      }),
  };
}

export const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
