import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type LifecycleOptions } from '../../src/lifecycle/index.js';
import { createFakeClock } from '../../src/testing/index.js';
import { planBudget, BUDGET_OPTIONS } from '../../src/lifecycle/budget.js';
import { parseOptions } from '../../src/options.js';
import { startService } from './child.js';
import { get, rawConnect } from './raw-client.js';
import { quickLifecycle, serveOn } from './serving.js';

async function serve(given: LifecycleOptions = {}) {
  const lifecycle = quickLifecycle(given);
  const server = () =>
    createServer((request, response) => {
      if (!lifecycle.prestop(request, response)) response.writeHead(404).end();
    });
  const publicPort = await serveOn(lifecycle, server());
  const port = await serveOn(lifecycle, server(), true);
  return { lifecycle, port, publicPort };
}

describe.concurrent('GET /-/prestop', () => {
  it('begins the stop at once and answers when the propagation delay is over, a second call too', async () => {
    const clock = createFakeClock();
    const { lifecycle, port } = await serve({ clock, propagationDelayMs: 5_000, lameDuckMs: 1_000 });
    const first = await rawConnect(port);
    first.send(get('/-/prestop'));
    while (lifecycle.state !== 'draining') await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(3_000);
    const second = await rawConnect(port);
    second.send(get('/-/prestop'));
    await clock.advance(1_999);
    expect(first.received() + second.received()).toBe('');
    await clock.advance(1);
    await Promise.all([first.sees('200 OK'), second.sees('200 OK')]);
    const report = lifecycle.stop('SIGTERM');
    await clock.advance(1_000);
    expect(await report).toMatchObject({ exitCode: 0, reason: 'prestop', phases: [{ phase: 'lame-duck' }, {}, {}] });
    expect((await report).phases[0]?.durationMs).toBe(5_000);
  });

  it('joins a stop that a signal has begun', async () => {
    const clock = createFakeClock();
    const { lifecycle, port } = await serve({ clock, propagationDelayMs: 5_000 });
    const report = lifecycle.stop('SIGTERM');
    await clock.advance(4_000);
    const client = await rawConnect(port);
    client.send(get('/-/prestop'));
    await clock.advance(1_000);
    await client.sees('200 OK');
    await clock.advance(1_000);
    expect((await report).reason).toBe('SIGTERM');
  });

  it.each([
    ['a public server', 'GET /-/prestop', 'publicPort'],
    ['another method', 'POST /-/prestop', 'port'],
    ['another path', 'GET /-/prestops', 'port'],
  ] as const)('does not exist for %s', async (_, line, which) => {
    const served = await serve();
    const client = await rawConnect(served[which]);
    client.send(`${line} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await client.sees('404');
    expect(served.lifecycle.state).toBe('running');
    await served.lifecycle.stop();
  });

  it('a SIGTERM behind it is the first signal, and lengthens nothing', async () => {
    const service = await startService({ management: true, budget: { propagationDelayMs: 300 } });
    const answer = await fetch(`http://127.0.0.1:${service.managementPort}/-/prestop`);
    expect(answer.status).toBe(200);
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    const stopped = await service.line(({ message }) => message === 'stopped');
    const report = stopped.report as { reason: string; phases: { phase: string; durationMs: number }[] };
    expect(report.reason).toBe('prestop');
    expect(report.phases.filter(({ phase }) => phase === 'lame-duck')).toHaveLength(1);
    expect(service.lines.some(({ message }) => message?.startsWith('second signal'))).toBe(false);
  });

  it('ends the process by itself where no signal follows', async () => {
    const service = await startService({ management: true, budget: { propagationDelayMs: 150 } });
    const answer = await fetch(`http://127.0.0.1:${service.managementPort}/-/prestop`);
    expect(answer.status).toBe(200);
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });
});

describe('the propagation delay', () => {
  const plan = (given: object) => planBudget(parseOptions('test', BUDGET_OPTIONS, given));

  it('is the lame duck where it is the longer of the two', () => {
    expect(plan({ propagationDelayMs: 10_000 })).toMatchObject({ lameDuckMs: 10_000, endsMs: { http: 35_000 } });
    expect(plan({ propagationDelayMs: 1_000 })).toMatchObject({ lameDuckMs: 2_000, endsMs: { http: 27_000 } });
  });

  it('R-SHUT-2 is named in the arithmetic of a budget that does not fit', () => {
    expect(() => plan({ propagationDelayMs: 30_000 })).toThrow(
      'propagationDelayMs 30000 (longer than the lame duck 2000) + HTTP 25000 = 55000',
    );
  });
});
