import { mkdtempSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startService, type Line, type Service } from './child.js';
import { get, rawConnect } from './raw-client.js';

const logged = (message: string) => (line: Line) => line.message === message;
const marked = (mark: string) => (line: Line) => line.mark === mark;
const reportOf = (service: Service) =>
  service.lines.find(logged('stopped'))!['report'] as {
    exitCode: number;
    reason: string;
    durationMs: number;
    steps: { name: string; outcome: string }[];
    phases: { phase: string }[];
    http: { requests: number; cut: number; lateAfterFin: number }[];
  };
const outcomes = (service: Service) =>
  Object.fromEntries(reportOf(service).steps.map(({ name, outcome }) => [name, outcome]));

// Most of a test's time is the start of its process on a busy machine.
const timeout = 60_000;

describe.concurrent('a service that gets SIGTERM', { timeout }, () => {
  it('R-SHUT-1 finishes the request in flight, then leaves with 0', async () => {
    const service = await startService();
    const slow = fetch(`${service.url}/slow?ms=300`);
    await service.marked('slow request');
    service.kill('SIGTERM');
    const response = await slow;
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('slow');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(reportOf(service)).toMatchObject({ exitCode: 0, reason: 'SIGTERM' });
  });

  it('R-SHUT-CFG-3 R-SHUT-CFG-4 turns readiness to 503 before anything else, and stays alive', async () => {
    const service = await startService({ budget: { lameDuckMs: 1_500 } });
    expect((await fetch(`${service.url}/health/ready`)).status).toBe(200);
    service.kill('SIGTERM');
    await service.line(logged('stopping'));
    const ready = await fetch(`${service.url}/health/ready`);
    expect(ready.status).toBe(503);
    expect(await ready.json()).toMatchObject({ state: 'draining' });
    expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
    expect((await fetch(`${service.url}/`)).status).toBe(200);
    await service.exited;
    expect(service.indexOf(logged('stopping'))).toBeLessThan(service.indexOf(marked('stopping relay')));
  });

  it('R-SHUT-HTTP-1 loses nothing of clients that never leave', async () => {
    // Twice the round trip would do; the machine of a test may be busy.
    const service = await startService({ budget: { lameDuckMs: 300, quietMs: 300, httpDrainMs: 2_500 } });
    const agent = new Agent({ keepAlive: true });
    const outcome = { answered: 0, toldToClose: 0, lost: [] as string[] };
    const ask = () =>
      new Promise<'answered' | 'refused' | 'lost'>((resolve) => {
        const asked = request(`${service.url}/`, { agent }, (response) => {
          if (response.headers.connection === 'close') outcome.toldToClose++;
          response.resume().on('end', () => {
            resolve(response.complete ? 'answered' : 'lost');
          });
        });
        asked.on('error', (error: NodeJS.ErrnoException) => {
          if (error.code !== 'ECONNREFUSED') outcome.lost.push(String(error.code));
          resolve(error.code === 'ECONNREFUSED' ? 'refused' : 'lost');
        });
        asked.end();
      });
    const client = async (): Promise<void> => {
      while ((await ask()) === 'answered') outcome.answered++;
    };
    const clients = Array.from({ length: 8 }, client);
    await ask();
    service.kill('SIGTERM');
    await Promise.all(clients);
    agent.destroy();
    expect(outcome.lost).toEqual([]);
    expect(outcome.toldToClose).toBeGreaterThan(0);
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  it('is not held up by idle connections and by ones that were never used', async () => {
    const service = await startService();
    const idle = await rawConnect(service.port);
    idle.send(get('/'));
    await idle.sees('quick');
    const unused = await rawConnect(service.port);
    service.kill('SIGTERM');
    expect(await Promise.all([idle.ended, unused.ended])).toEqual(['fin', 'fin']);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(reportOf(service).durationMs).toBeLessThan(5_000);
  });

  it('completes a slow download of 32 MiB', async () => {
    const service = await startService();
    const bytes = 32 * 1024 * 1024;
    const client = await rawConnect(service.port);
    client.socket.pause();
    client.send(get(`/download?bytes=${bytes}`));
    await service.marked('download request');
    service.kill('SIGTERM');
    await service.marked('drained unused');
    // A slow reader at first, so that most of it is still ours when a line without it would long be closed.
    let chunks = 0;
    client.socket.on('data', () => {
      if (++chunks > 100) return;
      client.socket.pause();
      setTimeout(() => client.socket.resume(), 1);
    });
    client.socket.resume();
    expect(await client.ended).toBe('fin');
    const [head, body] = client.received().split('\r\n\r\n');
    expect(head).toContain('200 OK');
    expect(body).toHaveLength(bytes);
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  it('R-SHUT-SCHED-1 lets a worker finish its run and begins no other', async () => {
    const service = await startService({ workerRunMs: 300 });
    await service.marked('worker run begun');
    service.kill('SIGTERM');
    await service.exited;
    const count = (mark: string) => service.lines.filter(marked(mark)).length;
    expect(count('worker run ended')).toBe(count('worker run begun'));
    const stop = service.indexOf(logged('stopping'));
    expect(service.lines.slice(stop).filter(marked('worker run begun'))).toEqual([]);
    expect(service.indexOf(marked('stopping pool'))).toBeGreaterThan(stop);
    expect(outcomes(service)).toMatchObject({ worker: 'stopped', pool: 'stopped' });
  });

  it('R-SHUT-DB-1 R-SHUT-KFK-4 stops work and consumers, then producers, then pools', async () => {
    const service = await startService();
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    const stopped = service.lines.flatMap(({ mark }) => (mark?.startsWith('stopped ') ? [mark.slice(8)] : []));
    expect(stopped.slice(0, 2).sort()).toEqual(['consumer', 'relay']);
    expect(stopped.slice(2)).toEqual(['producer', 'pool']);
  });

  it('R-SHUT-OBS-2 R-SHUT-OBS-3 R-SHUT-OBS-X1 logs start, signal, phases and report at info', async () => {
    const service = await startService();
    service.kill('SIGINT');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    const log = service.lines.filter(({ level }) => level !== undefined && level !== 'debug');
    expect(log.map(({ level }) => level)).toEqual(log.map(() => 'info'));
    expect(log.map(({ message }) => message)).toEqual(
      expect.arrayContaining(['started', 'signal received', 'stopping', 'shutdown phase ended', 'stopped']),
    );
    const signal = service.lines.find(logged('signal received'))!;
    expect(signal).toMatchObject({
      signal: 'SIGINT',
      pid: expect.any(Number) as number,
      uptimeMs: expect.any(Number) as number,
    });
    expect(service.lines.at(-1)).toMatchObject({ message: 'stopped' });
    expect(reportOf(service).phases.map(({ phase }) => phase)).toEqual(
      expect.arrayContaining(['lame-duck', 'http', 'work', 'consumers', 'producers', 'pools']),
    );
  });
});

describe.concurrent('a stop in which something goes wrong', { timeout }, () => {
  it('abandons what hangs, still closes the pool, and leaves with 124 within the budget', async () => {
    const service = await startService({
      budget: { workMs: 400, producersMs: 200, httpDrainMs: 500 },
      faults: { relay: 'hang', producer: 'hang' },
    });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 124, signal: null });
    expect(outcomes(service)).toMatchObject({
      relay: 'abandoned',
      consumer: 'stopped',
      producer: 'abandoned',
      pool: 'stopped',
    });
    // Two deadlines of at most half a second each, on whatever machine; without them it would never end.
    expect(reportOf(service).durationMs).toBeLessThan(10_000);
  });

  it('goes on after what throws, and leaves with 1', async () => {
    const service = await startService({ faults: { consumer: 'throw', producer: 'throw' } });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(outcomes(service)).toMatchObject({
      consumer: 'failed',
      producer: 'failed',
      relay: 'stopped',
      pool: 'stopped',
    });
    expect(service.lines).toContainEqual(expect.objectContaining({ level: 'error', err: 'consumer cannot stop' }));
  });

  it('gives the process up at once on a second signal, with 128 + n', async () => {
    const service = await startService({ faults: { relay: 'hang' } });
    service.kill('SIGTERM');
    await service.marked('stopping relay');
    service.kill('SIGINT');
    expect(await service.exited).toEqual({ code: 130, signal: null });
    expect(service.lines.some(logged('stopped'))).toBe(false);
  });

  it.each([
    ['lame duck', { budget: { lameDuckMs: 60_000, graceMs: 90_000 } }, logged('stopping')],
    ['HTTP', { budget: { quietMs: 60_000, httpDrainMs: 70_000, graceMs: 90_000 } }, marked('stopping relay')],
    ['work', { faults: { relay: 'hang' } }, marked('stopping relay')],
    ['consumers', { faults: { consumer: 'hang' } }, marked('stopping consumer')],
    ['producers', { faults: { producer: 'hang' } }, marked('stopping producer')],
    ['pools', { faults: { pool: 'hang' } }, marked('stopping pool')],
  ] as const)('gives up at once on a second SIGTERM in the phase %s (oklog/run#19)', async (_, config, reached) => {
    const service = await startService(config);
    service.kill('SIGTERM');
    await service.line(reached);
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 143, signal: null });
  });

  it('is short after an uncaught error, also where it was under way and something hangs', async () => {
    const service = await startService({
      budget: { workMs: 60_000, httpDrainMs: 60_000, graceMs: 90_000, crashMs: 500 },
      faults: { relay: 'hang' },
      throwAtStop: true,
    });
    service.kill('SIGTERM');
    // Without the short budget it would go on for a minute, and the test with it.
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(outcomes(service)).toMatchObject({ relay: 'abandoned', producer: 'stopped', pool: 'stopped' });
  });

  it('cuts a request that outlasts the budget, and leaves with 124', async () => {
    const service = await startService({ budget: { httpDrainMs: 2_000 } });
    const slow = fetch(`${service.url}/slow?ms=60000`).then(
      () => 'answered',
      () => 'cut',
    );
    await service.marked('slow request');
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 124, signal: null });
    expect(await slow).toBe('cut');
    expect(outcomes(service)).toMatchObject({ http: 'forced', pool: 'stopped' });
    expect(reportOf(service).http[0]).toMatchObject({ cut: 1 });
  });

  it('closes what is open when the signal comes during start-up', async () => {
    const service = await startService({ neverStarted: true });
    expect((await fetch(`${service.url}/health/ready`)).status).toBe(503);
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(outcomes(service)).toMatchObject({ relay: 'stopped', pool: 'stopped', http: 'stopped' });
  });

  it.each(['crash', 'reject'])('stops in order after an uncaught error (%s), and leaves with 1', async (path) => {
    const service = await startService({ budget: { crashMs: 900 } });
    void fetch(`${service.url}/${path}`).catch(() => undefined);
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(outcomes(service)).toMatchObject({ relay: 'stopped', producer: 'stopped', pool: 'stopped' });
    expect(reportOf(service).phases.map(({ phase }) => phase)).not.toContain('lame-duck');
  });

  it('with its signals installed twice runs each hook once (nestjs/terminus#312)', async () => {
    const service = await startService({ installs: 2 });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(service.lines.filter(marked('stopping pool'))).toHaveLength(1);
  });

  it('runs each hook once when the application stops it itself and the signal comes in between', async () => {
    const service = await startService({ stopsItself: true });
    void fetch(`${service.url}/stop`).catch(() => undefined);
    await service.line(logged('stopping'));
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(service.lines.filter(marked('stopping pool'))).toHaveLength(1);
    expect(reportOf(service).reason).toBe('by itself');
  });

  it('has written its last line when a logger writes in a thread of its own (pinojs/pino#2002)', async () => {
    const file = join(mkdtempSync(join(tmpdir(), 'replaysafe-pino-')), 'log');
    const service = await startService({ pinoFile: file });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    expect(readFileSync(file, 'utf8')).toContain('"msg":"stopped"');
  });

  it('does not report success when an error is thrown during the stop', async () => {
    const service = await startService({ throwAtStop: true });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(outcomes(service)).toMatchObject({ pool: 'stopped' });
  });
});
