/* eslint-disable @typescript-eslint/no-extraneous-class, @typescript-eslint/no-unsafe-class-instance-assignment -- how Nest is written */
import { type Server } from 'node:http';
import { describe, expect, it } from 'vitest';
import { LIFECYCLE, ReplaysafeModule } from '../../../src/adapters/nestjs.js';
import { ask, hooksOf, startNest, startPlain, type Platform } from './start-nest.js';

const HOOK_ORDER = ['a.onModuleDestroy', 'a.beforeApplicationShutdown', 'a.onApplicationShutdown'];
const once = (trail: readonly string[]): void => {
  expect([...new Set(trail)]).toEqual(trail);
};

describe.each<Platform>(['express', 'fastify'])('ReplaysafeModule on %s', (platform) => {
  it('R-SHUT-CFG-4: answers the probes outside the global prefix, and is ready when it is bootstrapped', async () => {
    const { app, lifecycle, url } = await startNest(platform);
    expect(app.get(LIFECYCLE)).toBe(lifecycle);
    expect(lifecycle.state).toBe('running');
    expect((await ask(`${url}/health/ready`)).status).toBe(200);
    expect((await ask(`${url}/health/live?x=1`)).body).toBe('{"status":"ok","state":"running"}');
    expect((await ask(`${url}/api/health/ready`)).status).toBe(404);
    await app.close();
  });

  it.each(['app.close()', 'lifecycle.stop()'])(
    'R-SHUT-DB-X1: %s drains first, then runs the hooks in the order of Nest, then closes the pools',
    async (how) => {
      const trail: string[] = [];
      const started = await startNest(platform, { trail, providers: [['a', hooksOf('a', trail)]] });
      const { app, lifecycle, url, slowArrived, finishSlow } = started;
      const note = (what: string) => ({ name: what, stop: async () => void trail.push(what) });
      lifecycle.consumer(note('consumer'));
      lifecycle.pool(note('pool'));
      const slow = ask(`${url}/slow`);
      await slowArrived;
      const stopping = how === 'app.close()' ? app.close() : lifecycle.stop();
      // R-SHUT-CFG-3, and nest#7611: a polling client is told to leave by the first response after the signal.
      const during = await ask(`${url}/health/ready`);
      expect([during.status, during.headers.connection]).toEqual([503, 'close']);
      expect((await ask(`${url}/quick`)).body).toBe('quick');
      expect(trail).toEqual(['consumer']);
      finishSlow();
      expect(await slow).toMatchObject({ status: 200, body: 'slow' });
      await stopping;
      expect(trail).toEqual(['consumer', 'slow answered', ...HOOK_ORDER, 'pool']);
      expect((await lifecycle.stop()).exitCode).toBe(0);
      await app.close();
      once(trail);
    },
  );

  it('nestjs/mongoose#206: a pool that is closed in onModuleDestroy is still open for the last request', async () => {
    const pool = { open: true, onModuleDestroy: () => void (pool.open = false) };
    const { app, url, slowArrived, finishSlow, trail } = await startNest(platform, { providers: [['pool', pool]] });
    const slow = ask(`${url}/slow`).then(() => trail.push(`pool open: ${String(pool.open)}`));
    await slowArrived;
    const closing = app.close();
    finishSlow();
    await slow;
    await closing;
    expect(trail).toEqual(['slow answered', 'pool open: true']);
    expect(pool.open).toBe(false);
  });

  it('nestjs/terminus#312: close() twice and stop() at once run each hook once', async () => {
    const trail: string[] = [];
    const { app, lifecycle } = await startNest(platform, { trail, providers: [['a', hooksOf('a', trail)]] });
    await Promise.all([app.close(), lifecycle.stop(), app.close()]);
    expect(trail).toEqual(HOOK_ORDER);
  });

  it('nest#9517: an open SSE stream is ended, the slow request is answered, and the hooks run', async () => {
    const trail: string[] = [];
    const { app, lifecycle, url, slowArrived, finishSlow, eventsOpen } = await startNest(platform, {
      trail,
      providers: [['a', hooksOf('a', trail)]],
    });
    const events = ask(`${url}/events`);
    const slow = ask(`${url}/slow`);
    await Promise.all([eventsOpen, slowArrived]);
    const closing = app.close();
    expect(await events).toMatchObject({ status: 200, body: 'data: hello\n\n' });
    expect(trail).toEqual([]);
    finishSlow();
    expect((await slow).status).toBe(200);
    await closing;
    expect(trail).toEqual(['slow answered', ...HOOK_ORDER]);
    expect(lifecycle.report?.exitCode).toBe(0);
  });

  it('nest#9517: the hooks run although one response never ends', async () => {
    const trail: string[] = [];
    const { app, lifecycle, url, slowArrived } = await startNest(platform, {
      trail,
      providers: [['a', hooksOf('a', trail)]],
      budget: { httpDrainMs: 200 },
    });
    const cut = ask(`${url}/slow`).catch((error: unknown) => error);
    await slowArrived;
    await app.close();
    expect(await cut).toBeInstanceOf(Error);
    expect(trail).toEqual(HOOK_ORDER);
    expect(lifecycle.report?.exitCode).toBe(124);
  });
});

describe.each<Platform>(['express', 'fastify'])('without the module, on %s', (platform) => {
  it('lifecycle.server(app.getHttpServer()) drains, and Nest closes behind it', async () => {
    const trail: string[] = [];
    const { app, url, slowArrived, finishSlow, lifecycle } = await startPlain(platform, trail);
    const slow = ask(`${url}/slow`);
    await slowArrived;
    const stopping = lifecycle.stop();
    expect((await ask(`${url}/quick`)).headers.connection).toBe('close');
    expect(trail).toEqual([]);
    finishSlow();
    expect((await slow).status).toBe(200);
    expect((await stopping).exitCode).toBe(0);
    expect(trail).toEqual(['slow answered', ...HOOK_ORDER]);
    expect((app.getHttpServer() as Server).listening).toBe(false);
  });
});

describe('hooks that fail', () => {
  it('one that throws keeps no other from running; it is reported by name, and the exit code is 1', async () => {
    const trail: string[] = [];
    const { app, lifecycle } = await startNest('express', {
      trail,
      providers: [
        ['bad', hooksOf('bad', trail, { throws: true })],
        ['good', hooksOf('good', trail)],
      ],
    });
    lifecycle.pool({ name: 'pool', stop: async () => void trail.push('pool') });
    await app.close();
    expect(trail.filter((line) => line.startsWith('good'))).toHaveLength(3);
    expect(trail.at(-1)).toBe('pool');
    expect(lifecycle.report).toMatchObject({ exitCode: 1 });
    const failed = lifecycle.report!.steps.filter(({ outcome }) => outcome === 'failed').map(({ name }) => name);
    expect(failed).toContain('nest: Object.onModuleDestroy');
  });

  it('one that hangs is left behind by the next ones, and abandoned by name; the pool closes, the exit code is 124', async () => {
    const trail: string[] = [];
    const { app, lifecycle } = await startNest('fastify', {
      trail,
      hookMs: 20,
      providers: [
        ['stuck', { onModuleDestroy: () => new Promise(() => undefined) }],
        ['good', hooksOf('good', trail)],
      ],
      budget: { httpDrainMs: 100, workMs: 100, consumersMs: 100, producersMs: 200 },
    });
    lifecycle.pool({ name: 'pool', stop: async () => void trail.push('pool') });
    await app.close();
    expect(trail).toEqual([...HOOK_ORDER.map((line) => line.replace('a.', 'good.')), 'pool']);
    expect(lifecycle.report).toMatchObject({ exitCode: 124 });
    const left = lifecycle.report!.steps.filter(({ outcome }) => outcome === 'abandoned').map(({ name }) => name);
    expect(left).toEqual(['nest: Object.onModuleDestroy']);
  });
});

describe('options', () => {
  it('refuses a name that it does not know, when the application is created', async () => {
    const misspelt = { helth: true } as object;
    await expect(startNest('express', misspelt)).rejects.toMatchObject({ code: 'RS_OPTION_UNKNOWN' });
  });

  it('takes options of a lifecycle, by forRootAsync too, and leaves no handler of signals behind', async () => {
    const { NestFactory } = await import('@nestjs/core');
    class Root {}
    const useFactory = async () => ({ lifecycle: { name: 'orders', lameDuckMs: 0 }, health: false });
    const module = { module: Root, imports: [ReplaysafeModule.forRootAsync({ useFactory })] };
    const before = process.listenerCount('SIGTERM');
    const context = await NestFactory.createApplicationContext(module, { logger: false });
    expect(context.get<{ name: string }>(LIFECYCLE).name).toBe('orders');
    expect(process.listenerCount('SIGTERM')).toBe(before + 1);
    await context.close();
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });
});
