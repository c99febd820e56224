import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { createLifecycle, type Lifecycle, type ShutdownReport } from '../../src/lifecycle/index.js';
import { onEvent } from '../../src/events.js';
import { silentLogger } from '../../src/ports/logger.js';
import { createFakeClock } from '../../src/testing/index.js';

function setUp(given: object = {}) {
  const clock = createFakeClock();
  const log: string[] = [];
  const lifecycle = createLifecycle({ clock, logger: silentLogger, ...given });
  const resource = (name: string, takesMs = 0, usedBy: readonly string[] = []) => ({
    name,
    usedBy,
    stop: () => {
      log.push(`> ${name}`);
      return new Promise<void>((resolve) => {
        clock.setTimer(takesMs, () => {
          log.push(`< ${name}`);
          resolve();
        });
      });
    },
  });
  return { clock, lifecycle, log, resource };
}

const never = (name: string, usedBy: readonly string[] = []) => ({
  name,
  usedBy,
  stop: () => new Promise<void>(() => undefined),
});
const coded = (code: string, text: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(text) as string }) as Error;
const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => {
      resolve();
    });
  });
const outcomes = (report: ShutdownReport) =>
  Object.fromEntries(report.steps.map(({ name, outcome }) => [name, outcome]));

async function stopWithin(
  clock: ReturnType<typeof createFakeClock>,
  lifecycle: Lifecycle,
  ms: number,
): Promise<ShutdownReport> {
  const stopping = lifecycle.stop('test');
  await clock.advance(ms);
  expect(lifecycle.state).toBe('closed');
  return stopping;
}

describe('the stop', () => {
  it('R-SHUT-DB-1 tells work and consumers at once, closes producers behind both, and pools last', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.pool(resource('pool', 5));
    lifecycle.producer(resource('producer', 5));
    lifecycle.consumer(resource('consumer', 10));
    lifecycle.relay(resource('relay', 20));
    await stopWithin(clock, lifecycle, 100);
    expect(log).toEqual([
      '> relay',
      '> consumer',
      '< consumer',
      '< relay',
      '> producer',
      '< producer',
      '> pool',
      '< pool',
    ]);
  });

  it('stops a resource only after all that declare to use it', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.pool(resource('database', 1, ['cache', 'tenant-database']));
    lifecycle.pool(resource('cache', 5));
    lifecycle.pool(resource('tenant-database', 10, ['cache']));
    await stopWithin(clock, lifecycle, 100);
    expect(log).toEqual(['> cache', '< cache', '> tenant-database', '< tenant-database', '> database', '< database']);
  });

  it('R-SHUT-CFG-3 has changed the state before anybody is told', () => {
    const { lifecycle } = setUp();
    const seen: string[] = [];
    const events = onEvent('lifecycle.stop-requested', () => seen.push(lifecycle.state));
    lifecycle.signals.stopping.addEventListener('abort', () => seen.push(lifecycle.state));
    lifecycle.started();
    void lifecycle.stop();
    events.unsubscribe();
    expect(seen).toEqual(['draining', 'draining']);
  });

  it('is one stop, however often it is asked for, and harmless before the start', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.pool(resource('pool'));
    const first = lifecycle.stop('first');
    const second = lifecycle.stop('second');
    lifecycle.started();
    await clock.advance(10);
    expect(await second).toBe(await first);
    expect((await first).reason).toBe('first');
    expect(lifecycle.report).toBe(await first);
    expect(log).toEqual(['> pool', '< pool']);
    await lifecycle[Symbol.asyncDispose]();
    expect(log).toHaveLength(2);
    expect(lifecycle.state).toBe('closed');
  });

  it('R-SHUT-SCHED-2 tells the two signals apart: stopping at once, deadline at the end of the phase', async () => {
    const { clock, lifecycle } = setUp();
    const { stopping, deadline, budgetMs } = lifecycle.signalsFor('work');
    expect([budgetMs, lifecycle.signals.budgetMs]).toEqual([20_000, 15_000]);
    lifecycle.relay(never('relay'));
    const stopped = lifecycle.stop();
    expect([stopping.aborted, deadline.aborted]).toEqual([true, false]);
    await clock.advance(19_000);
    expect(deadline.aborted).toBe(false);
    await clock.advance(600);
    expect(deadline.aborted).toBe(true);
    expect(lifecycle.signals.deadline.aborted).toBe(false);
    await clock.advance(1_000);
    expect((await stopped).exitCode).toBe(124);
  });
});

describe('a step that fails or hangs', () => {
  it('does not keep the ones after it, and is reported by name', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.relay(never('relay'));
    lifecycle.consumer({
      name: 'consumer',
      stop: () => {
        throw new Error('not even a promise');
      },
    });
    lifecycle.producer({ name: 'producer', stop: () => Promise.reject(new Error('no broker')) });
    lifecycle.pool(resource('pool'));
    const report = await stopWithin(clock, lifecycle, 20_100);
    expect(outcomes(report)).toEqual({ relay: 'abandoned', consumer: 'failed', producer: 'failed', pool: 'stopped' });
    expect(report.exitCode).toBe(124);
    expect(report.steps.find(({ name }) => name === 'producer')?.error).toEqual(new Error('no broker'));
    expect(report.phases.find(({ phase }) => phase === 'work')?.forced).toBe(true);
    expect(log).toEqual(['> pool', '< pool']);
  });

  it('is forced where it ends only because of its deadline', async () => {
    const { clock, lifecycle } = setUp();
    lifecycle.consumer({
      name: 'consumer',
      stop: aborted,
    });
    lifecycle.worker({
      name: 'worker',
      everyMs: 1,
      run: ({ deadline }) => aborted(deadline),
    });
    lifecycle.started();
    await clock.advance(10);
    const report = await stopWithin(clock, lifecycle, 20_000);
    expect(outcomes(report)).toEqual({ consumer: 'forced', worker: 'forced' });
    expect(report.exitCode).toBe(124);
  });

  it('leaves time to the pools when everything before them hangs, and to the second pool when the first does', async () => {
    const { clock, lifecycle, log, resource } = setUp({ graceMs: 51_000, preStopMs: 10_000 });
    lifecycle.relay(never('relay'));
    lifecycle.consumer(never('consumer'));
    lifecycle.producer(never('producer'));
    lifecycle.pool(never('replica'));
    lifecycle.pool(resource('primary', 500, ['replica']));
    const server = lifecycle.server(createServer());
    const report = await stopWithin(clock, lifecycle, 39_000);
    expect(server.listening).toBe(false);
    expect(outcomes(report)).toMatchObject({ producer: 'abandoned', replica: 'abandoned', primary: 'stopped' });
    expect(log).toEqual(['> primary', '< primary']);
    expect(report.durationMs).toBeLessThanOrEqual(lifecycle.budget.totalMs);
  });

  it('survives a logger that throws', async () => {
    const broken = () => {
      throw new Error('log transport is gone');
    };
    const { clock, lifecycle, log, resource } = setUp({
      logger: { debug: broken, info: broken, warn: broken, error: broken },
    });
    lifecycle.relay(never('relay'));
    lifecycle.pool(resource('pool'));
    await stopWithin(clock, lifecycle, 21_000);
    expect(log).toEqual(['> pool', '< pool']);
  });
});

describe('a registration', () => {
  it('of a name that is taken is refused', () => {
    const { lifecycle, resource } = setUp();
    lifecycle.pool(resource('database'));
    expect(() => lifecycle.relay(resource('database'))).toThrow(
      expect.objectContaining({ code: 'RS_LIFECYCLE_DUPLICATE_NAME' }),
    );
    lifecycle.server(createServer());
    lifecycle.server(createServer());
    expect(() => lifecycle.server(createServer(), { name: 'http-2' })).toThrow(
      expect.objectContaining({ code: 'RS_LIFECYCLE_DUPLICATE_NAME' }),
    );
  });

  it('that closes a circle is refused with the way round, and not kept', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.pool(resource('a', 0, ['b']));
    lifecycle.pool(resource('b', 0, ['c']));
    expect(() => lifecycle.pool(resource('c', 0, ['a']))).toThrow(coded('RS_LIFECYCLE_CYCLE', '"c" is used by "a"'));
    await stopWithin(clock, lifecycle, 10);
    expect(log.filter((line) => line.startsWith('>'))).toEqual(['> b', '> a']);
  });

  it('that turns the phases round is refused', () => {
    const { lifecycle, resource } = setUp();
    lifecycle.pool(resource('database'));
    expect(() => lifecycle.consumer(resource('billing', 0, ['database']))).toThrow(
      coded('RS_LIFECYCLE_CYCLE', 'later phase'),
    );
  });

  it.each([
    ['without a name', { stop: () => Promise.resolve() }],
    ['without a way to stop it', { name: 'database' }],
    ['that is nothing', undefined],
    ['that is null', null],
    ['that is no object', 'database'],
    ['used by what is no list', { name: 'database', usedBy: 'http', stop: () => Promise.resolve() }],
  ])('of something %s is refused', (_, resource) => {
    const { lifecycle } = setUp();
    expect(() => lifecycle.pool(resource as never)).toThrow(expect.objectContaining({ code: 'RS_OPTION_INVALID' }));
  });

  it('during the stop is stopped at once, or in its turn if that is still to come', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    lifecycle.relay(resource('relay', 100));
    const stopping = lifecycle.stop();
    await clock.advance(50);
    lifecycle.pool({ name: 'pool', end: () => Promise.resolve(log.push('> pool')) });
    lifecycle.consumer(resource('consumer', 100));
    await clock.advance(10);
    expect(log).toEqual(['> relay', '> consumer']);
    await clock.advance(200);
    const report = await stopping;
    expect(log).toEqual(['> relay', '> consumer', '< relay', '< consumer', '> pool']);
    expect(outcomes(report)).toEqual({ relay: 'stopped', consumer: 'stopped', pool: 'stopped' });
  });

  it('after the stop is stopped at once', async () => {
    const { clock, lifecycle, log, resource } = setUp();
    await stopWithin(clock, lifecycle, 10);
    lifecycle.pool(resource('pool', 5));
    await clock.advance(10);
    expect(log).toEqual(['> pool', '< pool']);
  });
});
