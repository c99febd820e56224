import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, it, vi } from 'vitest';
import { withFreshPorts } from '../src/free-port.js';
import { startOnce } from '../src/index.js';

it('takes other ports when one of them was bound in between, and gives up on any other failure', async () => {
  const tried: number[] = [];
  const started = await withFreshPorts(2, async (ports) => {
    tried.push(...ports);
    if (tried.length > 2) return 'started';
    const server = createServer().listen(ports[0], '127.0.0.1');
    await once(server, 'listening');
    try {
      const late = createServer().listen((server.address() as AddressInfo).port, '127.0.0.1');
      await once(late, 'listening');
      return 'not reached';
    } finally {
      server.close();
    }
  });
  expect(started).toBe('started');
  expect(new Set(tried).size).toBe(4);

  const broken = vi.fn(() => Promise.reject(new Error('no memory')));
  await expect(withFreshPorts(1, broken)).rejects.toThrow('no memory');
  expect(broken).toHaveBeenCalledTimes(1);
});

it('starts once for all who ask, and stops with the last of them', async () => {
  const stop = vi.fn(() => Promise.resolve());
  const start = vi.fn(() => Promise.resolve({ stop }));
  const [first, second] = await Promise.all([startOnce('a test', start), startOnce('a test', start)]);
  expect(first.service).toBe(second.service);
  await first.release();
  await first.release();
  expect(stop).not.toHaveBeenCalled();
  await second.release();
  expect([start.mock.calls.length, stop.mock.calls.length]).toEqual([1, 1]);

  const again = await startOnce('a test', start);
  expect(start).toHaveBeenCalledTimes(2);
  await again.release();
});
