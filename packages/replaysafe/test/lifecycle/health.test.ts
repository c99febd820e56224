import { describe, expect, it } from 'vitest';
import { createLifecycle, type ReadinessCheck } from '../../src/lifecycle/index.js';
import { createFakeClock } from '../../src/testing/index.js';

function setUp(check?: ReadinessCheck) {
  const clock = createFakeClock();
  const warnings: object[] = [];
  const quiet = () => undefined;
  const lifecycle = createLifecycle({
    clock,
    logger: { debug: quiet, info: quiet, warn: (fields) => warnings.push(fields), error: quiet },
  });
  if (check) lifecycle.readiness('database', check);
  lifecycle.started();
  return { clock, lifecycle, warnings };
}

describe('the probes', () => {
  it('R-SHUT-CFG-4 tell liveness from readiness over the whole life', async () => {
    const clock = createFakeClock();
    const lifecycle = createLifecycle({ clock });
    const seen: string[] = [];
    const look = async () => {
      const [live, ready] = await Promise.all([lifecycle.probe('live'), lifecycle.probe('ready')]);
      seen.push(`${lifecycle.state} ${live.status} ${ready.status}`);
    };
    lifecycle.producer({ name: 'producer', stop: look });
    lifecycle.relay({ name: 'relay', stop: look });
    await look();
    lifecycle.started();
    await look();
    const stopping = lifecycle.stop();
    await clock.advance(1);
    await stopping;
    await look();
    expect(seen).toEqual([
      'starting 200 503',
      'running 200 200',
      'draining 200 503',
      'closing 200 503',
      'closed 503 503',
    ]);
  });

  it('say 503 while a readiness check fails, without saying why to the outside', async () => {
    let broken = true;
    const { clock, lifecycle, warnings } = setUp(() => {
      if (broken) throw new Error('password authentication failed for user "shop"');
    });
    const answer = await lifecycle.probe('ready');
    expect(answer).toEqual({
      status: 503,
      body: { status: 'unavailable', state: 'running', checks: { database: 'failed' } },
    });
    expect((await lifecycle.probe('live')).status).toBe(200);
    await clock.advance(1_001);
    await lifecycle.probe('ready');
    expect(warnings).toHaveLength(1);
    broken = false;
    await clock.advance(1_001);
    expect((await lifecycle.probe('ready')).body.checks).toEqual({ database: 'ok' });
  });

  it('share one run of a check, and use its outcome again for a second', async () => {
    let runs = 0;
    const { clock, lifecycle } = setUp(() => {
      runs++;
    });
    await Promise.all([lifecycle.probe('ready'), lifecycle.probe('ready')]);
    await clock.advance(999);
    await lifecycle.probe('ready');
    expect(runs).toBe(1);
    await clock.advance(1);
    await lifecycle.probe('ready');
    expect(runs).toBe(2);
  });

  it('bound a check that hangs, and do not start another beside it', async () => {
    let runs = 0;
    const { clock, lifecycle } = setUp(() => {
      runs++;
      return new Promise(() => undefined);
    });
    for (let probe = 0; probe < 3; probe++) {
      const answer = lifecycle.probe('ready');
      await clock.advance(2_000);
      expect((await answer).body.checks).toEqual({ database: 'timed-out' });
      await clock.advance(1_000);
    }
    expect(runs).toBe(1);
  });

  it('R-SHUT-CFG-3 say 503 also to a probe whose checks were running when the stop began', async () => {
    let finish: () => void = () => undefined;
    const { lifecycle } = setUp(() => new Promise<void>((resolve) => (finish = resolve)));
    const answer = lifecycle.probe('ready');
    void lifecycle.stop();
    finish();
    expect((await answer).status).toBe(503);
  });
});
