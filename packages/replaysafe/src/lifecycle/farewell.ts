import { type Socket } from 'node:net';
import { type Clock } from '../ports/clock.js';

/**
 * Ends a connection so that nothing already sent is lost: FIN, read on for a while, then destroy. Closing a socket with
 * unread bytes makes the operating system send an RST, which can overtake the response before it.
 *
 * What still arrives is thrown away, not parsed: its answer could not be sent any more, so it must not be executed.
 *
 * @returns when the socket is closed
 */
export function farewell(
  clock: Clock,
  socket: Socket,
  options: { readonly lingerMs: number; readonly lastWords?: string; readonly onLateBytes?: () => void },
): Promise<void> {
  if (socket.destroyed) return Promise.resolve();
  // The only consumer of the bytes so far is the HTTP parser.
  socket.removeAllListeners('data');
  socket.once('data', options.onLateBytes ?? (() => undefined));
  socket.resume();
  if (options.lastWords === undefined) socket.end();
  else socket.end(options.lastWords);

  return new Promise((resolve) => {
    const timer = clock.setTimer(options.lingerMs, () => {
      socket.destroy();
    });
    socket.once('close', () => {
      timer.cancel();
      resolve();
    });
  });
}
