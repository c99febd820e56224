import { type Server as NetServer, type Socket } from 'node:net';
import { intercept, type PassOn } from './intercept.js';

export interface HeldNewcomers {
  /** From now on they are served, those that waited first. */
  admit(): void;
}

const ignore = (): void => undefined;

/**
 * Lets connections be accepted but nobody see them, and so nobody read them: neither the HTTP parser nor, on TLS, the
 * handshake. What their clients send waits where it is.
 */
export function holdNewcomers(server: NetServer, onNewcomer: () => void): HeldNewcomers {
  const held: { readonly socket: Socket; readonly passOn: PassOn }[] = [];
  const putBack = intercept(server, 'connection', (passOn, socket: Socket) => {
    // Its client may give up, and an error that nobody listens to ends the process.
    socket.on('error', ignore);
    held.push({ socket, passOn });
    onNewcomer();
  });
  return {
    admit: () => {
      putBack();
      for (const { socket, passOn } of held) {
        if (socket.destroyed) continue;
        passOn(socket);
        socket.removeListener('error', ignore);
      }
    },
  };
}
