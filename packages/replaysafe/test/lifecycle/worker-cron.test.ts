import { Cron } from 'croner';
import { describe, expect, it } from 'vitest';
import { createLifecycle, type CronSchedule, type WorkerOptions } from '../../src/lifecycle/index.js';
import { type Clock } from '../../src/ports/clock.js';
import { silentLogger } from '../../src/ports/logger.js';
import { createFakeClock } from '../../src/testing/index.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NEW_YEAR = Date.UTC(2026, 0, 1);

/** A worker by schedule, and a wall clock that can be set without time passing. */
function setUp(
  cron: CronSchedule,
  {
    now = NEW_YEAR,
    run = async () => undefined,
    ...options
  }: WorkerOptions & { now?: number; run?: () => Promise<void> } = {},
) {
  const fake = createFakeClock({ now });
  const delays: number[] = [];
  let wrongBy = 0;
  const clock: Clock = {
    now: () => fake.now() + wrongBy,
    monotonicMs: () => fake.monotonicMs(),
    setTimer: (delayMs, fire) => {
      delays.push(delayMs);
      return fake.setTimer(delayMs, fire);
    },
  };
  const logged: { level: string; message: string }[] = [];
  const note = (level: string) => (_: object, message: string) => void logged.push({ level, message });
  const logger = { ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') };
  const lifecycle = createLifecycle({ clock, logger, random: { next: () => 0.5 } });
  const runs: string[] = [];
  lifecycle.worker(
    {
      name: 'nightly',
      cron,
      run: () => {
        runs.push(new Date(clock.now()).toISOString().slice(5, 19));
        return run();
      },
    },
    options,
  );
  lifecycle.started();
  return {
    fake,
    lifecycle,
    runs,
    logged,
    delays,
    setClock: (byMs: number) => {
      wrongBy += byMs;
    },
  };
}

const cron = (text: string, timezone = 'UTC'): Cron => new Cron(text, { paused: true, timezone });

describe('a worker with a schedule', () => {
  it('runs at each moment of it, once', async () => {
    const { fake, runs } = setUp(cron('*/20 * * * *'));
    await fake.advance(HOUR + 1);
    expect(runs).toEqual(['01-01T00:20:00', '01-01T00:40:00', '01-01T01:00:00']);
  });

  it('takes a function, for libraries that have other words for it', async () => {
    const { fake, runs } = setUp((from) => new Date((Math.floor(from.getTime() / HOUR) + 1) * HOUR));
    await fake.advance(2 * HOUR);
    expect(runs).toEqual(['01-01T01:00:00', '01-01T02:00:00']);
  });

  it('runs at once as well where that is asked for', async () => {
    const { fake, runs } = setUp(cron('0 * * * *'), { firstRun: 'now' });
    await fake.advance(HOUR);
    expect(runs).toEqual(['01-01T00:00:00', '01-01T01:00:00']);
  });

  it('leaves out the moments that passed during a run, and makes no burst of them', async () => {
    const takes: { ms: number } = { ms: 150 * MINUTE };
    const set = setUp(cron('0 * * * *'), {
      run: () => new Promise((resolve) => void set.fake.setTimer(takes.ms, resolve)),
    });
    await set.fake.advance(7 * HOUR);
    expect(set.runs).toEqual(['01-01T01:00:00', '01-01T04:00:00', '01-01T07:00:00']);
  });

  it('that fails waits for the next moment', async () => {
    const { fake, runs, logged } = setUp(cron('0 * * * *'), { run: () => Promise.reject(new Error('no')) });
    await fake.advance(2 * HOUR);
    expect(runs).toEqual(['01-01T01:00:00', '01-01T02:00:00']);
    expect(logged.filter(({ level }) => level === 'warn')).toHaveLength(2);
  });

  it('is spread only to later, by a share of the time between two moments', async () => {
    const { fake, runs } = setUp(cron('0 * * * *'), { jitter: 0.5 });
    await fake.advance(3 * HOUR);
    expect(runs).toEqual(['01-01T01:15:00', '01-01T02:15:00']);
  });

  it('R-SHUT-SCHED-1 wakes from its wait when the stop begins', async () => {
    const { fake, lifecycle, runs } = setUp(cron('0 0 1 1 *'));
    await fake.advance(MINUTE);
    const stopping = lifecycle.stop();
    await fake.advance(1);
    expect((await stopping).exitCode).toBe(0);
    expect([runs, fake.pendingTimers]).toEqual([[], 0]);
  });

  it('ends when the schedule is over, and says so at INFO', async () => {
    const { fake, lifecycle, runs, logged } = setUp(
      new Cron('0 * * * *', { paused: true, maxRuns: 2, stopAt: new Date(NEW_YEAR + HOUR) }),
    );
    await fake.advance(DAY);
    expect(runs.length).toBeLessThanOrEqual(1);
    expect(logged).toContainEqual({
      level: 'info',
      message: 'the schedule of a worker is over; it does not run any more',
    });
    expect(logged.filter(({ level }) => level !== 'info')).toEqual([]);
    expect(fake.pendingTimers).toBe(0);
    const stopping = lifecycle.stop();
    await fake.advance(1);
    expect((await stopping).exitCode).toBe(0);
  });

  it.each<[string, CronSchedule]>([
    [
      'throws',
      () => {
        throw new Error('out of range');
      },
    ],
    ['names the past', (from) => new Date(from.getTime() - 1)],
    ['names no moment', () => new Date(NaN)],
    ['names nothing', () => undefined as unknown as Date],
  ])('asks a schedule that %s again and again, but does not spin', async (_, schedule) => {
    let asked = 0;
    const { fake, lifecycle, logged } = setUp((from) => {
      asked++;
      return (schedule as (from: Date) => Date)(from);
    });
    await fake.advance(10 * MINUTE);
    expect(asked).toBeGreaterThan(5);
    expect(asked).toBeLessThan(25);
    expect(logged.filter(({ level }) => level === 'warn')).toHaveLength(asked);
    const stopping = lifecycle.stop();
    await fake.advance(1);
    await stopping;
  });
});

describe('a clock that is not to be trusted', () => {
  it('a wait longer than a timer can be does not overflow', async () => {
    const { fake, runs, delays, setClock } = setUp(cron('0 0 1 1 *'));
    await fake.advance(5 * MINUTE);
    expect(runs).toEqual([]);
    expect(Math.max(...delays)).toBeLessThanOrEqual(MINUTE);
    setClock(365 * DAY);
    await fake.advance(MINUTE);
    expect(runs).toHaveLength(1);
  });

  it('leaps ahead over several moments: one run', async () => {
    const { fake, runs, setClock } = setUp(cron('*/10 * * * *'));
    await fake.advance(MINUTE);
    setClock(35 * MINUTE);
    await fake.advance(MINUTE);
    expect(runs).toEqual(['01-01T00:37:00']);
    await fake.advance(3 * MINUTE);
    expect(runs).toEqual(['01-01T00:37:00', '01-01T00:40:00']);
  });

  it.each([5, 1_000, HOUR])('is set back by %s ms: no moment is run twice, and nothing spins', async (byMs) => {
    const { fake, runs, delays, setClock } = setUp(cron('*/10 * * * *'));
    await fake.advance(10 * MINUTE);
    expect(runs).toHaveLength(1);
    setClock(-byMs);
    const before = delays.length;
    await fake.advance(byMs + 9 * MINUTE);
    expect(runs).toHaveLength(1);
    expect(delays.length - before).toBeLessThan(byMs / MINUTE + 15);
    await fake.advance(MINUTE);
    expect(runs).toHaveLength(2);
  });

  it('is set back during a run: the moment is not run again', async () => {
    const set = setUp(cron('*/10 * * * *'), {
      run: async () => {
        if (set.runs.length === 1) set.setClock(-5 * MINUTE);
      },
    });
    await set.fake.advance(24 * MINUTE);
    expect(set.runs).toEqual(['01-01T00:10:00']);
    await set.fake.advance(MINUTE);
    expect(set.runs).toEqual(['01-01T00:10:00', '01-01T00:20:00']);
  });

  it('is set back just before a moment, when the timer has fired', async () => {
    const { fake, runs, delays, setClock } = setUp(cron('*/10 * * * *'));
    await fake.advance(10 * MINUTE - 1);
    setClock(-3);
    await fake.advance(1);
    expect(runs).toEqual([]);
    await fake.advance(3);
    expect(runs).toEqual(['01-01T00:10:00']);
    expect(delays.length).toBeLessThan(15);
  });

  it('was a year ahead and is put right: the schedule begins again, with a warning', async () => {
    const { fake, runs, logged, setClock } = setUp(cron('0 * * * *'));
    setClock(365 * DAY);
    await fake.advance(30 * MINUTE);
    expect(runs).toHaveLength(1);
    setClock(-365 * DAY);
    await fake.advance(HOUR);
    expect(runs).toEqual(['01-01T00:01:00', '01-01T01:00:00']);
    expect(logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
  });

  it.each([
    ['spring, when 02:30 does not exist', Date.UTC(2026, 2, 28)],
    ['autumn, when it comes twice', Date.UTC(2026, 9, 24)],
  ])('%s: one run a day', async (_, now) => {
    const { fake, runs } = setUp(cron('30 2 * * *', 'Europe/Berlin'), { now });
    await fake.advance(3 * DAY);
    expect(runs).toHaveLength(3);
    expect(new Set(runs.map((at) => at.slice(0, 5))).size).toBe(3);
  });
});

describe('what is no schedule is refused', () => {
  const worker = (job: object, options?: object) => () => {
    createLifecycle().worker({ name: 'x', run: async () => undefined, ...job } as never, options as never);
  };
  const refusal = (code: string, message: RegExp) =>
    expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

  it.each([
    [{ cron: '0 3 * * *' }, /write cron: new Cron\('…', \{ paused: true \}\) with croner/],
    [{ cron: {} }, /must have nextRun\(from\)/],
    [{ cron: null }, /must have nextRun\(from\)/],
    [{ cron: cron('* * * * *'), everyMs: 10 }, /give one of them/],
  ])('job %#', (job, message) => {
    expect(worker(job)).toThrow(refusal('RS_OPTION_INVALID', message));
  });

  it('neither an interval nor a schedule', () => {
    expect(worker({})).toThrow(refusal('RS_OPTION_REQUIRED', /everyMs or cron/));
  });

  it.each([
    [{ overlap: 0 }, 'RS_OPTION_INVALID', /overlap must be a whole number from 1 to 16/],
    [{ overlap: 17 }, 'RS_OPTION_INVALID', /overlap/],
    [{ jitter: 0.6 }, 'RS_OPTION_INVALID', /jitter must be a share from 0 to 0.5/],
    [{ jitter: '10%' }, 'RS_OPTION_INVALID', /jitter/],
    [{ firstRun: 'soon' }, 'RS_OPTION_INVALID', /firstRun must be one of now, later/],
    [{ leese: {} }, 'RS_OPTION_UNKNOWN', /did you mean "lease"/],
    [{ lease: true }, 'RS_OPTION_INVALID', /must be an object with sql/],
    [{ lease: {} }, 'RS_OPTION_REQUIRED', /lease: sql/],
    [{ lease: { sql: { connect: 1, query: 1 } } }, 'RS_OPTION_INVALID', /fromPg/],
  ])('options %j', (options, code, message) => {
    expect(worker({ everyMs: 10 }, options)).toThrow(refusal(code, message));
  });

  const sql = { query: () => undefined, transaction: () => undefined, join: () => undefined };
  it.each([
    [{ everyMs: 10 }, { lease: { sql }, overlap: 2 }, /overlap must be 1 with lease/],
    [{ cron: cron('* * * * *') }, { lease: { sql }, firstRun: 'now' }, /firstRun must be 'later'/],
    [{ everyMs: 10 }, { lease: { sql, leaseMs: 50 } }, /leaseMs must be a whole number from 100/],
    [{ everyMs: 10, name: 'x'.repeat(201) }, { lease: { sql } }, /at most 200 characters/],
  ])('with a lease %#', (job, options, message) => {
    expect(worker(job, options)).toThrow(refusal('RS_OPTION_INVALID', message));
  });
});
