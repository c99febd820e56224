import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { closeShare } from '../../src/lifecycle/close-share.js';
import { createFakeClock } from '../../src/testing/index.js';
import { get, rawConnect } from './raw-client.js';
import { quickLifecycle, serveOn } from './serving.js';

describe('the share of responses that say close', () => {
  it.each([
    [0, 0],
    [500, 25],
    [1_000, 50],
    [2_000, 100],
    [9_000, 100],
  ])('grows over the lame duck with ramp: after %i of 2000 ms %i of 100', async (afterMs, expected) => {
    const clock = createFakeClock();
    let draws = 0;
    const share = closeShare({ clock, random: { next: () => (draws++ % 100) / 100 }, connectionClose: 'ramp' });
    share.begin(2_000);
    await clock.advance(afterMs);
    expect(Array.from({ length: 100 }, () => share.says()).filter(Boolean)).toHaveLength(expected);
  });

  it('is all of them from the first moment by default, and with ramp when the lame duck is over', () => {
    const clock = createFakeClock();
    const random = { next: () => 0.999 };
    const all = closeShare({ clock, random, connectionClose: 'all' });
    all.begin(2_000);
    expect(all.says()).toBe(true);
    const ramp = closeShare({ clock, random, connectionClose: 'ramp' });
    ramp.begin(2_000);
    expect(ramp.says()).toBe(false);
    ramp.end();
    expect(ramp.says()).toBe(true);
  });

  it('a polling client is told to close in the lame duck at the latest when all are', async () => {
    const draws = [0.9, 0];
    const lifecycle = quickLifecycle({
      connectionClose: 'ramp',
      lameDuckMs: 300,
      random: { next: () => draws.shift() ?? 0 },
    });
    const port = await serveOn(
      lifecycle,
      createServer((request, response) => response.end(`answer to ${request.url!}`)),
    );
    const client = await rawConnect(port);
    const stopping = lifecycle.stop();
    client.send(get('/1'));
    await client.sees('answer to /1');
    expect(client.received()).toMatch(/^connection: keep-alive\r$/im);
    client.send(get('/2'));
    await client.sees('answer to /2');
    expect(client.received()).toMatch(/^connection: close\r$/im);
    expect((await stopping).exitCode).toBe(0);
  });
});
