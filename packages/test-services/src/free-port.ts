import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below the ranges from which Linux, macOS and Windows take the local ports of outgoing connections, so that none of
// those can take the port between our look and the service's bind, nor while a crashed service is down.
const lowest = 20_000;
const beyond = 32_000;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });

/**
 * A TCP port of 127.0.0.1 that nobody listened on a moment ago. Another process may still take it first: start the
 * service through {@link withFreshPorts}.
 */
export const freePort = async (): Promise<number> => {
  for (let tries = 0; tries < 1_000; tries += 1) {
    const port = randomInt(lowest, beyond);
    if (await isFree(port)) return port;
  }
  throw new Error(`No free TCP port between ${lowest} and ${beyond} on 127.0.0.1`);
};

/** Whether a start failed only because someone else bound the port first. */
export const isPortTaken = (error: unknown): boolean =>
  /address already in use|EADDRINUSE|port is already allocated/i.test(String(error));

/** Starts a service on `count` fresh ports, and again on others when one of them was taken in between. */
export const withFreshPorts = async <T>(count: number, start: (ports: number[]) => Promise<T>): Promise<T> => {
  for (let tries = 1; ; tries += 1) {
    const ports = new Set<number>();
    while (ports.size < count) ports.add(await freePort());
    try {
      return await start([...ports]);
    } catch (error) {
      if (tries === 5 || !isPortTaken(error)) throw error;
    }
  }
};
