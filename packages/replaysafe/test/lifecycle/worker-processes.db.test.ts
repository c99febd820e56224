import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { LeaseDatabase } from './lease-database.js';

type Line = Readonly<Record<string, unknown>>;

let db: LeaseDatabase;
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  db = await LeaseDatabase.open();
});
beforeEach(() => db.clear());
afterEach(async () => {
  await Promise.all(ends.splice(0).map((end) => end()));
});
afterAll(() => db.close());

/** A pod in a process of its own; see the program. */
async function launch(env: { readonly LEASE_MS: number; readonly EVERY_MS?: number; readonly CRON_EVERY_MS?: number }) {
  const program = fileURLToPath(new URL('../programs/leased-worker.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', program], {
    env: {
      ...process.env,
      DATABASE_URL: db.database.url,
      ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit').then(([code]) => code as number | null);
  ends.push(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const seen: Line[] = [];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (text) => seen.push(JSON.parse(text) as Line));
  const line = async (accepts: (line: Line) => boolean): Promise<Line> => {
    for (;;) {
      const found = seen.find(accepts);
      if (found) return found;
      await Promise.race([
        once(lines, 'line'),
        exited.then((code) => Promise.reject(new Error(`the pod ended with ${String(code)}`))),
      ]);
    }
  };
  await line(({ up }) => up === true);
  return {
    seen,
    line,
    exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    finishRun: () => child.stdin.write('finish\n'),
  };
}

const began = ({ began: epoch }: Line): boolean => epoch !== undefined;

it('two pods: killed in the middle of a run (SIGKILL), the other runs it when the lease is over', async () => {
  const leaseMs = 1_000;
  const [first, second] = await Promise.all([0, 1].map(() => launch({ LEASE_MS: leaseMs, EVERY_MS: 50 })));
  const [runner, other] = await Promise.race([
    first!.line(began).then(() => [first!, second!] as const),
    second!.line(began).then(() => [second!, first!] as const),
  ]);
  expect(other.seen.some(began)).toBe(false);
  runner.kill('SIGKILL');
  const killedAt = performance.now();
  expect(await other.line(began)).toEqual({ began: '2' });
  expect(performance.now() - killedAt).toBeLessThan(2 * leaseMs);
  other.finishRun();
  await other.line(({ committed }) => committed === '2');
  expect(await db.effects()).toEqual(['2']);
});

it('two pods: frozen past its lease and woken (SIGSTOP, SIGCONT), its checked writes are refused (P10)', async () => {
  const frozen = await launch({ LEASE_MS: 300, EVERY_MS: 3_600_000 });
  await frozen.line(began);
  frozen.kill('SIGSTOP');
  const other = await launch({ LEASE_MS: 30_000, EVERY_MS: 3_600_000 });
  expect(await other.line(began)).toEqual({ began: '2' });
  frozen.kill('SIGCONT');
  frozen.finishRun();
  expect(await frozen.line(({ refused }) => refused !== undefined)).toEqual({ refused: '1', lost: true, code: true });
  other.finishRun();
  await other.line(({ committed }) => committed === '2');
  expect(await db.effects()).toEqual(['2']);
  expect(await db.rowThat(({ owner }) => owner === null)).toMatchObject({ epoch: '2', failures: 0 });
});

it('R-SHUT-IDEM-1 two pods: SIGTERM in the middle of a run: it is finished and committed, and the other goes on without waiting for the lease', async () => {
  const stopping = await launch({ LEASE_MS: 60_000, EVERY_MS: 50 });
  await stopping.line(began);
  const other = await launch({ LEASE_MS: 60_000, EVERY_MS: 50 });
  stopping.kill('SIGTERM');
  stopping.finishRun();
  await stopping.line(({ committed }) => committed === '1');
  expect(await stopping.exited).toBe(0);
  expect(await db.effects()).toEqual(['1']);
  // Long before the minute of the lease is over.
  expect(await other.line(began)).toEqual({ began: '2' });
});

it('a moment of a schedule that a killed pod had begun is run by the pod that starts next', async () => {
  // The next moment is further away than the test lasts: only the one that was begun can be run.
  const everyMs = 1_500;
  const killed = await launch({ LEASE_MS: 400, CRON_EVERY_MS: everyMs });
  await killed.line(began);
  const { slot } = (await db.row())!;
  killed.kill('SIGKILL');
  await killed.exited;
  const next = await launch({ LEASE_MS: 30_000, CRON_EVERY_MS: 86_400_000 });
  expect(await next.line(began)).toEqual({ began: '2' });
  expect((await db.row())!.slot).toEqual(slot);
  next.finishRun();
  await next.line(({ committed }) => committed === '2');
  expect(await db.effects()).toEqual(['2']);
});
