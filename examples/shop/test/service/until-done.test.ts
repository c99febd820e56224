import { silentLogger } from 'replaysafe';
import { describe, expect, test } from 'vitest';
import { untilDone } from '../../src/service/until-done.js';

const context = (stopping = new AbortController().signal) => ({ stopping, logger: silentLogger });

describe('waiting for what is not there yet', () => {
  test('tries again until it works', async () => {
    let tries = 0;
    await untilDone('connect', context(), async () => {
      tries += 1;
      if (tries < 3) throw new Error('refused');
      return undefined;
    });
    expect(tries).toBe(3);
  });

  test('fails at once with what waiting cannot heal', async () => {
    const final = new Error('newer schema');
    await expect(untilDone('migrate', context(), async () => final)).rejects.toBe(final);
  });

  test('ends when the service is to stop, in the middle of a wait too', async () => {
    const stop = new AbortController();
    let tries = 0;
    await untilDone('connect', context(stop.signal), async () => {
      tries += 1;
      stop.abort();
      throw new Error('refused');
    });
    expect(tries).toBe(1);
  });
});
