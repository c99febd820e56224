import { type IncomingMessage } from 'node:http';
import { type Server as NetServer, type Socket } from 'node:net';

type UpgradeListener = (request: IncomingMessage, socket: Socket) => void;

/**
 * Hears of upgrades before the application, but only while the application listens to them: a server without any such
 * listener serves the request as if it had not asked for one, and must go on doing so.
 */
export function followUpgrades(server: NetServer, onUpgrade: UpgradeListener): () => void {
  const listening = (): boolean => server.listeners('upgrade').includes(onUpgrade);
  const follow = (event: string): void => {
    if (event === 'upgrade' && !listening()) server.prependListener('upgrade', onUpgrade);
  };
  const unfollow = (event: string): void => {
    if (event === 'upgrade' && listening() && server.listenerCount('upgrade') === 1) {
      server.removeListener('upgrade', onUpgrade);
    }
  };

  if (server.listenerCount('upgrade') > 0) follow('upgrade');
  let following = false;
  const onNew = (event: string): void => {
    // Our own addition is one, too.
    if (following) return;
    following = true;
    follow(event);
    following = false;
  };
  server.on('newListener', onNew);
  server.on('removeListener', unfollow);
  return () => {
    server.removeListener('newListener', onNew);
    server.removeListener('removeListener', unfollow);
    server.removeListener('upgrade', onUpgrade);
  };
}
