import { createServer } from 'node:http';
import { once } from 'node:events';
import { type AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createLifecycle } from '../../src/lifecycle/index.js';
import { get, rawConnect } from './raw-client.js';

const DRAIN_MS = 4_000;

describe('HTTP drain (R-SHUT-HTTP-1)', () => {
  test('ends although probes keep coming, each on a connection of its own', async () => {
    const lifecycle = createLifecycle({ lameDuckMs: 0, quietMs: 200, httpDrainMs: DRAIN_MS });
    const server = lifecycle.server(
      createServer((request, response) => {
        if (!lifecycle.health(request, response)) response.end('served');
      }),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    lifecycle.started();

    // Far more often than `quietMs`, until nobody answers any more.
    const probing = (async () => {
      for (let probes = 0; ; probes++) {
        try {
          const connection = await rawConnect(port);
          connection.send(get('/health/ready'));
          await connection.ended;
          connection.socket.destroy();
        } catch {
          return probes;
        }
      }
    })();

    const report = await lifecycle.stop();
    const http = report.phases.find(({ phase }) => phase === 'http');
    expect(http?.durationMs).toBeLessThan(DRAIN_MS / 2);
    expect(await probing).toBeGreaterThan(2);
  });
});
