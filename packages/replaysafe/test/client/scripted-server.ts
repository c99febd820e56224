import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Arrival {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly body: string;
  /** How many requests this connection has carried, this one included. */
  readonly nthOnConnection: number;
}

export type Reaction = (response: ServerResponse, arrival: Arrival) => void;

export const answer =
  (status: number, headers: Record<string, string> = {}, body = ''): Reaction =>
  (response) =>
    void response.writeHead(status, headers).end(body);

/** The request was read whole, and perhaps executed; the client gets RST. */
export const reset: Reaction = (response) => void response.socket!.resetAndDestroy();

export const hang: Reaction = () => undefined;

export interface ScriptedServer {
  readonly url: string;
  readonly arrivals: Arrival[];
  /** Resolves when the n-th request has been read to its end. */
  arrived(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Reacts to the n-th request with the n-th reaction; the last one repeats. */
export async function scriptedServer(...script: readonly Reaction[]): Promise<ScriptedServer> {
  const arrivals: Arrival[] = [];
  const perConnection = new WeakMap<object, number>();
  let waiting: { count: number; resolve: () => void }[] = [];

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const nthOnConnection = (perConnection.get(request.socket) ?? 0) + 1;
    perConnection.set(request.socket, nthOnConnection);
    const arrival = {
      method: request.method!,
      path: request.url!,
      key: request.headers['idempotency-key'] as string | undefined,
      body: Buffer.concat(chunks).toString('utf8'),
      nthOnConnection,
    };
    arrivals.push(arrival);
    waiting = waiting.filter(({ count, resolve }) => {
      if (arrivals.length >= count) resolve();
      return arrivals.length < count;
    });
    script[Math.min(arrivals.length, script.length) - 1]!(response, arrival);
  };

  const server = createServer((request, response) => void receive(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrivals,
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
        server.closeAllConnections();
      }),
  };
}
